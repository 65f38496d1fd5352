"""Overhead of a map: wall time of `potmap` up to the NumPy array, kernel time, and host time by stage.

python tests/benchmarks/map_walls.py DEVICE [SYSTEM[,SYSTEM...] [CALLS [METHOD[,METHOD...] [walls]]]]

Systems are those of tests/benchmarks/mesh.py, src3, ruvab, ball:10000 and ball:100000 by default; methods direct,
cutoff and mesh; 256^3 points 0.5 A apart. The first of CALLS, 10 by default, does not count. Then, for the last system
and the mesh: the main thread's time by stages, each without the stages it calls; the same for a kept plan; and, unless
"walls" is given, the first map of a process, without and with compiled kernels on disk.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any

START = time.perf_counter()

import numpy as np  # noqa: E402
from harness.commands import counted_calls  # noqa: E402
from mesh import atoms_of  # noqa: E402

from pele_ocl import Grid, Potmap, potmap  # noqa: E402
from pele_ocl.opencl import get_device  # noqa: E402

POINTS, SPACING = 256, 0.5
COLUMNS = "system", "method", "kernels, ms", "wall clock, ms", "median", "beyond kernels, ms", "median"
MESH = {"method": "mesh", "accuracy": 1e-4}
METHODS = {"direct": {"method": "direct", "min_distance": 1e-3}, "cutoff": {"method": "cutoff"}, "mesh": MESH}
# Functions by stage; those that another commit does not have are left out.
STAGES = {
    "charges and positions": "problem:MapProblem.of problem:MapProblem.moved",
    "points on atoms": "plan:require_apart",
    "atoms to the device": "sorting:DeviceAtoms.__init__",
    "sorting": "sorting:DeviceAtoms.sort bins:Bins.of mesh.device_mesh:Spreading.sorted",
    "tables": "mesh.far:FarMesh.__init__ bins:NearTables.__init__ bins:NearTables.arguments",
    "ways to the points": "mesh.device_mesh:Interpolation.__init__",
    "memory of the map": "slabs:MapSlab.on",
    "charges onto nodes": "mesh.device_mesh:Spreading.onto",
    "transforms": "mesh.transform:Convolution.apply",
    "to the points": "mesh.device_mesh:Interpolation.add",
    "sums that measure the error": "error:Sample.__init__ error:Sample.errors",
    "squares": "slabs:MapSlab.squares",
    "waiting for kernels": "..opencl.queue:Queue.finish",
    "download": "slabs:MapSlab.download",
    "planning": "plan:planned computing:planned plan:Potmap.__init__", "the rest": "plan:Potmap.evaluate spec:one_map",
}  # fmt: skip


class Stages:
    """Milliseconds of the main thread in each stage."""

    def __init__(self) -> None:
        self.spent, self._inner = Counter[str](), [0.0]
        for stage, functions in STAGES.items():
            for place in functions.split():
                self._watch(stage, *place.split(":"))

    def _watch(self, stage: str, module: str, name: str) -> None:
        try:
            owner: Any = importlib.import_module(
                f"pele_ocl.{module[2:]}" if module[0] == "." else f"pele_ocl.potmap.{module}"
            )
            *of, name = name.split(".")
            owner = getattr(owner, of[0]) if of else owner
            real = owner.__dict__[name]
        except (ImportError, AttributeError, KeyError):
            return
        made = real.__func__ if isinstance(real, classmethod) else real

        def timed(*args: Any, **options: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return made(*args, **options)
            start = time.perf_counter()
            self._inner.append(0.0)
            try:
                return made(*args, **options)
            finally:
                took = time.perf_counter() - start
                self.spent[stage] += 1e3 * (took - self._inner.pop())
                self._inner[-1] += took

        setattr(owner, name, classmethod(timed) if isinstance(real, classmethod) else timed)


def grid_of(atoms: Any) -> Grid:
    return Grid(atoms.positions.mean(axis=0) - SPACING * POINTS / 2 + 0.0123, SPACING, (POINTS,) * 3)


def main() -> None:
    systems = [*sys.argv[2:3], "src3,ruvab,ball:10000,ball:100000"][0].split(",")
    calls, methods = int([*sys.argv[3:4], "10"][0]), [*sys.argv[4:5], ",".join(METHODS)][0].split(",")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for system in systems:
        atoms = atoms_of(system)
        grid = grid_of(atoms)
        for options in (METHODS[name] for name in methods):
            walls, kernels = np.empty((2, calls))
            for call in range(calls):
                start = time.perf_counter()
                result = potmap(atoms, grid, device=sys.argv[1], **options)
                walls[call], kernels[call] = time.perf_counter() - start, result.seconds["kernel"]
            wall, beyond = 1e3 * walls[1:], 1e3 * (walls - kernels)[1:]
            numbers = 1e3 * kernels.min(), wall.min(), np.median(wall), beyond.min(), np.median(beyond)
            print(f"| {system} | {options['method']} | {' | '.join(f'{each:.1f}' for each in numbers)} |", flush=True)
    stages(atoms, grid, calls)
    if sys.argv[5:] != ["walls"]:
        first_calls(systems[-1])


def stages(atoms: Any, grid: Grid, calls: int) -> None:
    """Print the main thread's time by stages, for a map and for a map of a kept plan."""
    plan = Potmap(atoms, grid, device=sys.argv[1], **MESH)
    moved = [atoms.positions + np.random.default_rng(k).normal(0, 0.01, atoms.positions.shape) for k in range(2)]
    plan.evaluate(moved[0])
    found = Stages()
    for title, call in (
        ("a map", lambda k: potmap(atoms, grid, device=sys.argv[1], **MESH)),
        ("a kept plan, other positions", lambda k: plan.evaluate(moved[k % 2])),
    ):  # fmt: skip
        each = []
        for k in range(calls):
            found.spent.clear()
            with counted_calls() as made:
                start = time.perf_counter()
                call(k)
                each.append((1e3 * (time.perf_counter() - start), dict(found.spent)))
        best = min(wall for wall, _ in each[1:])
        middle = {stage: np.median([spent.get(stage, 0.0) for _, spent in each[1:]]) for stage in STAGES}
        median = np.median([wall for wall, _ in each[1:]])
        print(f"\n{title}, ms: {best:.1f}, median {median:.1f}; of the main thread, medians:")
        print(", ".join(f"{stage} {ms:.2f}" for stage, ms in middle.items() if ms), f"({dict(made)})", flush=True)


def first_calls(system: str) -> None:
    """Print the time of the first map of a process, with and without compiled kernels on disk."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: folder for name in ("XDG_CACHE_HOME", "CUDA_CACHE_PATH", "POCL_CACHE_DIR")}
        for title in ("kernels compiled", "kernels from disk", "kernels from disk"):
            command = [sys.executable, __file__, sys.argv[1], system, "first"]
            done = subprocess.run(command, env={**os.environ, **caches}, check=True, stdout=subprocess.PIPE, text=True)
            print(f"first map of a process, {title}, s: {done.stdout.strip()}", flush=True)


def first() -> None:
    """Print the times of the first two maps of this process, and of their stages, as JSON."""
    ready, built = time.perf_counter(), list[float]()
    atoms = atoms_of(sys.argv[2])
    device = get_device(sys.argv[1])
    grid, spent = grid_of(atoms), {"imports": ready - START, "device": time.perf_counter() - ready}
    building = importlib.import_module("pele_ocl.opencl.building")
    green = importlib.import_module("pele_ocl.potmap.mesh.far")
    real, table = building._build, green.green_table

    def build(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return real(*args)
        finally:
            built.append(time.perf_counter() - start)

    def timed_table(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return table(*args)
        finally:
            spent["table"] = time.perf_counter() - start

    building._build, green.green_table = build, timed_table
    for name in ("first", "second"):
        start = time.perf_counter()
        potmap(atoms, grid, device=device, **MESH)
        spent[name] = time.perf_counter() - start
    print(
        json.dumps(
            {
                **{name: round(took, 3) for name, took in spent.items()},
                "programs": len(built),
                "built": round(sum(built), 3),
            }
        )
    )


if __name__ == "__main__":
    first() if sys.argv[3:] == ["first"] else main()
