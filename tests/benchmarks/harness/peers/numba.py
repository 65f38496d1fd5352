"""Map with numba: the loop that one would write in C, compiled for all cores of the CPU."""

from __future__ import annotations

import time

import numpy as np
from timing_tables.installed import load

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid

from .peer import Array, MapPeer, relative_arrays


def potmap(atoms: Atoms, precision: str, gpu: bool) -> MapPeer:
    """Compute a parallel loop over rows with fastmath; the innermost loop is over the points of a row."""
    numba = load("numba")

    def loop(positions: Array, charges: Array, x: Array, y: Array, z: Array, values: Array) -> None:
        for row in numba.prange(len(z) * len(y)):
            k, j = row // len(y), row % len(y)
            sums = np.zeros_like(x)
            for a in range(len(charges)):
                dy, dz = y[j] - positions[a, 1], z[k] - positions[a, 2]
                dyz2, charge = dy * dy + dz * dz, charges[a]
                for i in range(len(x)):
                    dx = x[i] - positions[a, 0]
                    sums[i] += charge / np.sqrt(dx * dx + dyz2)
            values[k, j] = sums

    fill = numba.njit(parallel=True, fastmath=True)(loop)

    def once(grid: Grid) -> tuple[float, Array]:
        positions, charges, axes = relative_arrays(atoms, grid, precision)
        values = np.empty(grid.shape[::-1], precision)
        start = time.perf_counter()
        fill(positions, charges, *axes, values)
        return time.perf_counter() - start, values

    return MapPeer(numba.__version__, f"CPU, {numba.get_num_threads()} threads", once)
