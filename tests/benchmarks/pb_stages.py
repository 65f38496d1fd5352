"""Processor time of `pele-ocl pb molecule.in` by stage, including the start of Python.

python tests/benchmarks/pb_stages.py [STRUCTURE] [POINTS]     by default src3, 161 along each edge

The command runs three times in separate processes. The last two use cached kernels, and the faster one is reported.
Processor times are summed over all threads and hardly depend on other programs. Nested stages are excluded from a
stage.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BEGIN = "Python and its modules"
STAGED = (
    ("pele_ocl.opencl.device", "get_device", "device found"),
    ("pele_ocl.cli.pb", "read_apbs", "files read"),
    ("pele_ocl.opencl.building", "_build", "kernels loaded"),
    ("pele_ocl.pb.levels", "probe_points", "probes"),
    ("pele_ocl.pb.given_maps", "find_coefficients", "molecule on the grid"),
    ("pele_ocl.pb.levels", "add_border", "border"),
    ("pele_ocl.pb.levels.Level", "__init__", "charges, equation"),
    ("pele_ocl.pb.levels.Level", "prepare", "coarser grids"),
    ("pele_ocl.pb.levels.Level", "solve", "solver"),
    ("pele_ocl.pb.levels.Level", "energy", "energy"),
)


class Stages:
    """Time of stages in seconds; a stage ends when the next one starts."""

    def __init__(self) -> None:
        self.seconds, self._path, self._changed = {BEGIN: 0.0}, [BEGIN], 0.0

    def _change(self) -> None:
        now, stage = time.process_time(), self._path[-1]
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._changed
        self._changed = now

    def begin(self, stage: str) -> None:
        """Start a nested stage."""
        self._change()
        self._path.append(stage)

    def end(self) -> None:
        """Resume the enclosing stage."""
        self._change()
        self._path.pop()

    def timed(self, own: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Wrap a function as a stage that ends when the device has finished."""

        def call(*arguments: Any, **more: Any) -> Any:
            self.begin(stage)
            try:
                return own(*arguments, **more)
            finally:
                _wait_for_device(arguments)
                self.end()

        return call


def _wait_for_device(arguments: Sequence[Any]) -> None:
    first = arguments[0] if arguments else None
    launching = first if hasattr(first, "queue") else getattr(getattr(first, "equation", None), "launching", None)
    if launching is not None:
        launching.queue.finish()


def run_staged() -> None:
    """Run the command in this process, and print one line per stage."""
    stages = Stages()
    main = import_module("pele_ocl.cli").main
    import_module("pele_ocl.cli.pb")
    stages.begin("rest, printout")
    for place, name, stage in STAGED:
        module, is_class, _ = place.partition(".Level")
        owner = import_module(module).Level if is_class else import_module(module)
        setattr(owner, name, stages.timed(getattr(owner, name), stage))
    with suppress(SystemExit):
        main(["pb", "molecule.in"])
    stages.end()
    for stage, seconds in stages.seconds.items():
        print(f"STAGE {stage}: {seconds}")


def measure(name: str, points: int) -> None:
    """Print the table of a structure."""
    from timing_tables.pb import grid_for, write_input

    from pele_ocl.bench.systems import load

    with TemporaryDirectory() as folder:
        atoms = load(name)
        write_input(Path(folder), atoms, grid_for(atoms, points), 1e-6)
        found = []
        for _ in range(3):
            command = [sys.executable, str(Path(__file__).resolve()), "--staged"]
            lines = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
            parts = (line.removeprefix("STAGE ").split(": ") for line in lines if line.startswith("STAGE "))
            found.append({stage: float(seconds) for stage, seconds in parts})
    best = min(found[1:], key=lambda of_run: sum(of_run.values()))
    print("| stage | CPU s |\n|---|---|")
    for stage, seconds in [*best.items(), ("all", sum(best.values()))]:
        print(f"| {stage} | {seconds:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["--staged"]:
        run_staged()
    else:
        measure((sys.argv[1:] or ["src3"])[0], int((sys.argv[2:] or ["161"])[0]))
