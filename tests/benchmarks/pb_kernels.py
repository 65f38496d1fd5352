"""Device time of a Poisson-Boltzmann solution by kernel and by grid, and host overhead.

python tests/benchmarks/pb_kernels.py [STRUCTURE] [POINTS] [--whole] [--device D]     by default ubiquitin, 161
python tests/benchmarks/pb_kernels.py [STRUCTURE] --frames N [--device D]     N frames in one set of launches

The grid has edges of 64 A, or with --whole those of the comparison with APBS, including the transfer of the potential.
The times of stages, without profiling and the best of three runs, are printed below the kernels. Frames have the grid
and the noise of `pb.py frames`, and times are totals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from timing_tables.pb import grid_for

from pele_ocl import PBIon, PBModel, PoissonBoltzmann
from pele_ocl.bench.systems import load
from pele_ocl.opencl.device import Device, get_device
from pele_ocl.opencl.queue import Queue, seconds_of
from pele_ocl.pb import PBResult, centre_of, grid_at
from pele_ocl.pb.colours import Colours
from pele_ocl.pb.launching import Launching
from pele_ocl.pb.levels import Geometry

RUNS, NOISE = 3, 0.05  # NOISE : A, of every coordinate of a frame
SALT = (PBIon(1, 0.15), PBIon(-1, 0.15))


Solve = Callable[[], Sequence[PBResult]]


def frames(name: str, count: int, device: Device) -> tuple[PoissonBoltzmann, Solve]:
    """Return a solution of frames that differ by noise."""
    atoms = load(name)
    run = PoissonBoltzmann(atoms, PBModel(ions=SALT), device=device)
    moved = atoms.positions + np.random.default_rng(1).normal(0, NOISE, (count, len(atoms), 3))
    return run, lambda: run.solve_frames(moved, rows=count)


def problem(name: str, points: int, is_whole: bool, device: Device) -> tuple[PoissonBoltzmann, Solve]:
    """Return a solution of one structure."""
    atoms, salt = load(name), SALT
    grid = grid_for(atoms, points) if is_whole else grid_at(centre_of(atoms), 64 / (points - 1), [points] * 3)
    model = PBModel(surface="smol", ions=salt) if is_whole else PBModel(ions=salt)
    run = PoissonBoltzmann(atoms, model, grids=grid, reaction=not is_whole, device=device)
    return run, lambda: [run.solve(keep_map=False, grid_error=False)]


class Clocked:
    """Launches of a solution, by kernel and number of points along the first edge of the grid."""

    def __init__(self, run: PoissonBoltzmann, solve: Solve) -> None:
        self.queue = Queue(run.device, "float32", profile=True)
        self.labels = list[tuple[str, str]]()
        self._prepare = Launching.prepare
        with (
            patch.object(run, "_geometry", lambda is_kept=False: Geometry(Launching(self.queue), is_kept)),
            patch.object(Launching, "prepare", lambda own, *args, **values: self._labelled(own, args, values)),
        ):
            solve()
        self.queue.finish()

    def _labelled(self, own: Launching, args: tuple[Any, ...], values: dict[str, Any]) -> Callable[[], None]:
        launch, grid = self._prepare(own, *args, **values), values.get("grid")
        label = (args[1], str(grid.shape[0]) if isinstance(grid, Colours) else "")

        def labelled() -> None:
            self.labels.append(label)
            launch()

        return labelled

    def rows(self) -> list[tuple[str, str, int, float]]:
        """Return kernel, points, launches and seconds, the longest first."""
        found = dict[tuple[str, str], list[float]]()
        for label, event in zip(self.labels, self.queue.events, strict=True):
            found.setdefault(label, []).append(seconds_of(event))
        return sorted(((*label, len(each), sum(each)) for label, each in found.items()), key=lambda row: -row[-1])


def measure(run: PoissonBoltzmann, solve: Solve) -> None:
    """Print both tables."""
    Clocked(run, solve)  # builds the kernels
    found = Clocked(run, solve).rows()
    print("| kernel | points | launches | ms | us per launch |\n|---|---|---|---|---|")
    for kernel, points, count, seconds in found:
        print(f"| `{kernel}` | {points} | {count} | {1e3 * seconds:.3f} | {1e6 * seconds / count:.1f} |")
    print(f"| all | | {sum(row[2] for row in found)} | {1e3 * sum(row[3] for row in found):.2f} | |\n")
    best = min((solve() for _ in range(RUNS)), key=lambda results: results[0].seconds["total"])
    print("| stage | ms |\n|---|---|")
    for stage in best[0].seconds:
        print(f"| {stage} | {1e3 * sum(result.seconds[stage] for result in best):.2f} |")
    print(f"\n{best[0].iterations} iterations, {best[0].energy:.6f} kcal/mol, {run.device}")


def main() -> None:
    """Measure the requested solution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("structure", nargs="?", default="ubiquitin")
    parser.add_argument("points", nargs="?", type=int, default=161)
    parser.add_argument("--whole", action="store_true", help="the complete potential, as in APBS")
    parser.add_argument("--frames", type=int, help="solve frames that differ by noise in one set of launches")
    parser.add_argument("--device")
    options = parser.parse_args()
    device = get_device(options.device)
    if options.frames:
        measure(*frames(options.structure, options.frames, device))
    else:
        measure(*problem(options.structure, options.points, options.whole, device))


if __name__ == "__main__":
    main()
