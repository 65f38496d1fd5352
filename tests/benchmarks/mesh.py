"""Comparison of mesh maps with direct sums: wall time, kernel time, memory, and measured error.

python tests/benchmarks/mesh.py DEVICE SYSTEM[,SYSTEM...] [POINTS [ACCURACY[,...] [SPACING [LEVELS[,...]]]]]

A system is a name of tests/data (src3, ruvab, cct12), such a name with a number of copies side by side (cct12*91),
3 A apart or as many as follow (src3*27@400), or ball:N, charges at random in a ball as dense as a protein. The map has
POINTS^3 points, 256 by default, SPACING A apart, 0.5 by default, around the molecule's centre. Times of the mesh are
the best of eight calls, or of two if they take long; the direct sum is computed once, if its estimated time is less
than ten seconds. "first" is the wall time of the first call, with compiled kernels and without cached tables. LEVELS
are chosen by cost, "auto", or given as cutoffs in Angstrom, such as 4 and 4+8 for meshes of one and two levels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pele_ocl import Atoms, Grid, potmap
from pele_ocl.bench.systems import ball_of_atoms
from pele_ocl.potmap import MapOptions, planned
from pele_ocl.potmap.computing import estimate_seconds, memory_bytes
from pele_ocl.potmap.mesh import parameters as mesh_parameters
from pele_ocl.potmap.mesh.parameters import Levels

DATA = Path(__file__).parents[2] / "tests" / "data"
MOST_SECONDS, LONG_SECONDS = 10.0, 5.0
COLUMNS = (
    "atoms", "points", "accuracy", "cutoffs, A", "memory", "error", "kernels, ms", "wall clock, ms", "first, ms",
    "direct: kernels, ms", "ratio",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def atoms_of(system: str) -> Atoms:
    """Load the atoms of a system by its name."""
    shape, _, size = system.partition(":")
    if size:
        return ball_of_atoms(int(float(size)))
    name, _, copies = shape.partition("*")
    data = np.load(DATA / f"{name}.npz")
    atoms = Atoms(positions=data["coordinates"], charges=data["charge"])
    number, _, gap = copies.partition("@")
    return side_by_side(atoms, int(number), float(gap or 3.0)) if copies else atoms


def side_by_side(atoms: Atoms, copies: int, gap: float) -> Atoms:
    """Place copies of a molecule in a cube; gap : between them, A"""
    edge = int(np.ceil(copies ** (1 / 3)))
    steps = np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:copies]
    shifts = steps * (np.ptp(atoms.positions, axis=0) + gap)
    positions = (atoms.positions + shifts[:, None]).reshape(-1, 3)
    return Atoms(positions=positions, charges=np.tile(atoms.charges, copies))


@contextmanager
def taken(text: str) -> Iterator[None]:
    """Yield the meshes with these levels; all supported ones for "auto"."""
    every = mesh_parameters.levels
    if text != "auto":
        cutoffs = [float(word) for word in text.split("+")]
        mesh_parameters.levels = lambda problem: [Levels(cutoffs[0], cutoffs[-1])]
    mesh_parameters.forget()
    try:
        yield
    finally:
        mesh_parameters.levels = every
        mesh_parameters.forget()


def row(atoms: Atoms, grid: Grid, accuracy: float, device: str, direct: float, about: str) -> str:
    """Return a row of the table; direct : seconds of the kernels of the direct sum"""
    options = MapOptions(method="mesh", accuracy=accuracy, device=device)
    chosen = mesh_parameters.cheapest(planned(atoms, grid, options).problem)
    memory = memory_bytes(atoms, grid, options) / 2**20
    kernels, wall = [], []
    while len(wall) < (8 if not wall or wall[0] < LONG_SECONDS else 2):
        start = time.perf_counter()
        result = potmap(atoms, grid, method="mesh", accuracy=accuracy, device=device)
        wall.append(time.perf_counter() - start)
        kernels.append(result.seconds["kernel"])
    assert result.error is not None
    cutoffs = f"{chosen.cutoff:g}" + (f" and {chosen.reach:g}" if chosen.two else "")
    cells = [
        f"{len(atoms):,}", f"{grid.shape[0]}^3", f"{accuracy:g}", cutoffs, f"{memory:,.0f} MiB",
        f"{result.error.norm:.1e}", f"{1e3 * min(kernels):.2f}", f"{1e3 * min(wall):.1f}", f"{1e3 * wall[0]:.0f}",
        f"{about}{1e3 * direct:.1f}", f"{direct / min(kernels):.0f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    device, systems = sys.argv[1], sys.argv[2].split(",")
    given = dict(zip(("points", "accuracies", "spacing", "levels"), sys.argv[3:], strict=False))
    n, step = int(given.get("points", 256)), float(given.get("spacing", 0.5))
    accuracies = [float(text) for text in given.get("accuracies", "1e-4").split(",")]
    print(HEAD)
    for system in systems:
        atoms = atoms_of(system)
        grid = Grid(atoms.positions.mean(axis=0) - step * n / 2 + 0.0123, step, (n, n, n))
        estimate = estimate_seconds(atoms, grid, device=device)
        is_short = estimate < MOST_SECONDS
        direct = potmap(atoms, grid, device=device).seconds["kernel"] if is_short else estimate
        for accuracy in accuracies:
            for levels in given.get("levels", "auto").split(","):
                with taken(levels):
                    print(row(atoms, grid, accuracy, device, direct, "" if is_short else "about "), flush=True)


if __name__ == "__main__":
    main()
