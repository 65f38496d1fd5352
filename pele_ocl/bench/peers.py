"""What else computes a potential map: a compiled loop of numba, array operations of torch. None where not installed."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..grid import Grid
from ..units import COULOMB_KCAL_A

# Computes the map of a grid; returns seconds and values (nz, ny, nx), kcal/mol/e.
Once = Callable[[Grid], "tuple[float, Any]"]

POINTS_AT_ONCE = 8192


def numba(atoms: Atoms, precision: str) -> Once | None:
    """A parallel loop over rows with fastmath, the loop over a row's points innermost."""
    if find_spec("numba") is None:
        return None
    import numba

    real = np.dtype(precision).type

    def loop(positions: Any, charges: Any, x: Any, y: Any, z: Any, values: Any) -> None:
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

    fill: Any = numba.njit(parallel=True, fastmath=True)(loop)

    def once(grid: Grid) -> tuple[float, Any]:
        positions, charges, axes = _arrays(atoms, grid, real)
        values = np.empty(grid.shape[::-1], real)
        start = time.perf_counter()
        fill(positions, charges, *axes, values)
        return time.perf_counter() - start, values

    return once


def torch(atoms: Atoms, precision: str) -> Once | None:
    """Distances of some thousand points to all atoms at a time, on a GPU if there is one."""
    if find_spec("torch") is None:
        return None
    import torch

    where = "cuda" if torch.cuda.is_available() else "cpu"
    real = np.dtype(precision).type

    def once(grid: Grid) -> tuple[float, Any]:
        positions, charges, axes = _arrays(atoms, grid, real)
        points = np.stack(np.meshgrid(*axes[::-1], indexing="ij")[::-1], axis=-1).reshape(-1, 3)
        positions, charges, points = (torch.from_numpy(a).to(where) for a in (positions, charges, points))
        start = time.perf_counter()
        parts = []
        for some in torch.split(points, POINTS_AT_ONCE):
            away = some[:, None] - positions
            parts.append(torch.rsqrt((away * away).sum(-1)) @ charges)
        values = torch.cat(parts).cpu().numpy()
        return time.perf_counter() - start, values.reshape(grid.shape[::-1])

    return once


def _arrays(atoms: Atoms, grid: Grid, real: type[Any]) -> tuple[Any, Any, tuple[Any, ...]]:
    """Positions (n, 3) and axes from the middle of the grid, and charges with Coulomb's constant."""
    middle = (grid.origin + grid.last) / 2
    axes = tuple((axis - m).astype(real) for axis, m in zip(grid.axes(), middle, strict=True))
    return (atoms.positions - middle).astype(real), (COULOMB_KCAL_A * atoms.charges).astype(real), axes


PEERS: dict[str, Callable[[Atoms, str], Once | None]] = {"numba": numba, "torch": torch}
