"""Comparison of multilevel summation with mesh and direct sums at equal accuracy: wall and kernel time, and error.

python tests/benchmarks/msm.py DEVICE SYSTEM[,SYSTEM...] [POINTS [ACCURACY[,...]]]

Systems and maps are those of tests/benchmarks/mesh.py. Times are the best of three calls; the direct sum is computed
once, if its estimated time is less than a minute. "nodes" is the time of the kernels up to the potential on the finest
lattice, or on the mesh.
"""

from __future__ import annotations

import sys
import time

from mesh import MOST_SECONDS, atoms_of

from pele_ocl import Atoms, Grid, potmap
from pele_ocl.opencl import Queue, get_device
from pele_ocl.potmap import MapOptions, planned
from pele_ocl.potmap.computing import estimate_seconds
from pele_ocl.potmap.mesh import FarMesh, FarPart
from pele_ocl.potmap.msm import Lattices

NODES = {"mesh": FarMesh, "msm": Lattices}
SPACING = 0.5
COLUMNS = "atoms", "points", "method", "accuracy", "error", "kernels, ms", "nodes, ms", "wall clock, ms"
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def nodes_seconds(atoms: Atoms, grid: Grid, method: str, accuracy: float, device: str) -> float:
    """Return the time of the kernels up to the potential at the nodes."""
    plan = planned(atoms, grid, MapOptions(method, accuracy=accuracy, device=device))
    queue = Queue(get_device(device), plan.problem.precision)
    nodes = NODES[method](queue, plan.problem)
    FarPart(queue, plan.problem, nodes, nodes.begin(plan.problem)())
    return queue.kernel_seconds


def row(atoms: Atoms, grid: Grid, method: str, accuracy: float, device: str) -> str:
    """Return a row of the table."""
    kernels, wall = [], []
    for _ in range(3):
        start = time.perf_counter()
        result = potmap(atoms, grid, method=method, accuracy=accuracy, device=device)
        wall.append(time.perf_counter() - start)
        kernels.append(result.seconds["kernel"])
    assert result.error is not None
    nodes = min(nodes_seconds(atoms, grid, method, result.accuracy, device) for _ in range(3))
    taken = "" if result.accuracy == accuracy else f", {result.accuracy:g} taken"
    return (
        f"| {len(atoms):,} | {grid.shape[0]}^3 | {method} | {accuracy:g}{taken} | {result.error.norm:.1e} "
        f"| {1e3 * min(kernels):.2f} | {1e3 * nodes:.2f} | {1e3 * min(wall):.1f} |"
    )


def main() -> None:
    device, systems = sys.argv[1], sys.argv[2].split(",")
    given = dict(zip(("points", "accuracies"), sys.argv[3:], strict=False))
    n = int(given.get("points", 256))
    accuracies = [float(text) for text in given.get("accuracies", "1e-3,1e-4").split(",")]
    print(HEAD)
    for system in systems:
        atoms = atoms_of(system)
        grid = Grid(atoms.positions.mean(axis=0) - SPACING * n / 2 + 0.0123, SPACING, (n, n, n))
        for accuracy in accuracies:
            for method in ("msm", "mesh"):
                print(row(atoms, grid, method, accuracy, device), flush=True)
        seconds = estimate_seconds(atoms, grid, device=device)
        about = "" if seconds < MOST_SECONDS else "about "
        if not about:
            seconds = potmap(atoms, grid, device=device).seconds["kernel"]
        print(f"| {len(atoms):,} | {n}^3 | direct | | | {about}{1e3 * seconds:.1f} | | |", flush=True)


if __name__ == "__main__":
    main()
