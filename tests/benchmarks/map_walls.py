"""Cost of a map beyond its kernels: wall clock of `potmap` to the NumPy array, and its kernels.

python tests/benchmarks/map_walls.py DEVICE [SYSTEM[,SYSTEM...] [CALLS]]

Systems are those of tests/benchmarks/mesh.py, src3, ruvab, ball:10000 and ball:100000 by default; 256^3 points 0.5 A
apart. The first of CALLS, 10 by default, does not count.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mesh import atoms_of

from pele_ocl import Grid, potmap

POINTS, SPACING = 256, 0.5
COLUMNS = "system", "method", "kernels, ms", "wall clock, ms", "median", "beyond kernels, ms", "median"
METHODS = (
    {"method": "direct", "min_distance": 1e-3}, {"method": "cutoff"}, {"method": "mesh", "accuracy": 1e-4},
)  # fmt: skip


def main() -> None:
    systems = [*sys.argv[2:3], "src3,ruvab,ball:10000,ball:100000"][0].split(",")
    calls = int([*sys.argv[3:4], "10"][0])
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for system in systems:
        atoms = atoms_of(system)
        grid = Grid(atoms.positions.mean(axis=0) - SPACING * POINTS / 2 + 0.0123, SPACING, (POINTS,) * 3)
        for options in METHODS:
            walls, kernels = np.empty((2, calls))
            for call in range(calls):
                start = time.perf_counter()
                result = potmap(atoms, grid, device=sys.argv[1], **options)
                walls[call], kernels[call] = time.perf_counter() - start, result.seconds["kernel"]
            wall, beyond = 1e3 * walls[1:], 1e3 * (walls - kernels)[1:]
            numbers = 1e3 * kernels.min(), wall.min(), np.median(wall), beyond.min(), np.median(beyond)
            print(f"| {system} | {options['method']} | {' | '.join(f'{each:.1f}' for each in numbers)} |", flush=True)


if __name__ == "__main__":
    main()
