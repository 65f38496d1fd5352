"""Seconds of a Poisson-Boltzmann solution by kernel and by grid, on the device's clock, and what the host adds.

python tests/benchmarks/pb_kernels.py [STRUCTURE] [POINTS] [--whole] [--device D]     by default ubiquitin, 161

The grid has 64 A along each edge, or with --whole what APBS is given beside ours, and all of the potential. Below the
kernels are the seconds of the stages without the device's clock, the best of three runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from timing_tables.pb import grid_for

from pele_ocl import PBIon, PBModel, PoissonBoltzmann
from pele_ocl.bench.systems import load
from pele_ocl.opencl.device import Device, get_device
from pele_ocl.opencl.queue import Queue, seconds_of
from pele_ocl.pb import centre_of, grid_at
from pele_ocl.pb.colours import Colours
from pele_ocl.pb.launching import Launching
from pele_ocl.pb.levels import Geometry

RUNS = 3


def problem(name: str, points: int, is_whole: bool, device: Device) -> PoissonBoltzmann:
    """Plan the solution."""
    atoms, salt = load(name), (PBIon(1, 0.15), PBIon(-1, 0.15))
    grid = grid_for(atoms, points) if is_whole else grid_at(centre_of(atoms), 64 / (points - 1), [points] * 3)
    model = PBModel(surface="smol", ions=salt) if is_whole else PBModel(ions=salt)
    return PoissonBoltzmann(atoms, model, grids=grid, reaction=not is_whole, device=device)


class Clocked:
    """Launches of a solution, by kernel and points along the grid's first edge."""

    def __init__(self, run: PoissonBoltzmann) -> None:
        self.queue = Queue(run.device, "float32", profile=True)
        self.labels = list[tuple[str, str]]()
        self._prepare = Launching.prepare
        with (
            patch.object(run, "_geometry", lambda is_kept=False: Geometry(Launching(self.queue), is_kept)),
            patch.object(Launching, "prepare", lambda own, *args, **values: self._labelled(own, args, values)),
        ):
            run.solve(keep_map=False, grid_error=False)
        self.queue.finish()

    def _labelled(self, own: Launching, args: tuple[Any, ...], values: dict[str, Any]) -> Callable[[], None]:
        launch, grid = self._prepare(own, *args, **values), values.get("grid")
        label = (args[1], str(grid.shape[0]) if isinstance(grid, Colours) else "")

        def labelled() -> None:
            self.labels.append(label)
            launch()

        return labelled

    def rows(self) -> list[tuple[str, str, int, float]]:
        """Kernel, points, launches and seconds, the longest first."""
        found = dict[tuple[str, str], list[float]]()
        for label, event in zip(self.labels, self.queue.events, strict=True):
            found.setdefault(label, []).append(seconds_of(event))
        return sorted(((*label, len(each), sum(each)) for label, each in found.items()), key=lambda row: -row[-1])


def measure(run: PoissonBoltzmann) -> None:
    """Print both tables."""
    Clocked(run)  # builds the kernels
    found = Clocked(run).rows()
    print("| kernel | points | launches | ms | us a launch |\n|---|---|---|---|---|")
    for kernel, points, count, seconds in found:
        print(f"| `{kernel}` | {points} | {count} | {1e3 * seconds:.3f} | {1e6 * seconds / count:.1f} |")
    print(f"| all | | {sum(row[2] for row in found)} | {1e3 * sum(row[3] for row in found):.2f} | |\n")
    results = [run.solve(keep_map=False, grid_error=False) for _ in range(RUNS)]
    best = min(results, key=lambda result: result.seconds["total"])
    print("| stage | ms |\n|---|---|")
    for stage, seconds in best.seconds.items():
        print(f"| {stage} | {1e3 * seconds:.2f} |")
    print(f"\n{best.iterations} iterations, {best.energy:.6f} kcal/mol, {run.device}")


def main() -> None:
    """Measure the solution that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("structure", nargs="?", default="ubiquitin")
    parser.add_argument("points", nargs="?", type=int, default=161)
    parser.add_argument("--whole", action="store_true", help="all of the potential, as APBS has it")
    parser.add_argument("--device")
    options = parser.parse_args()
    measure(problem(options.structure, options.points, options.whole, get_device(options.device)))


if __name__ == "__main__":
    main()
