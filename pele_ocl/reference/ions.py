"""Reference implementation of greedy ion placement; equation numbers of docs/theory/ions.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..units import COULOMB_KCAL_A

Bools = NDArray[np.bool_]

# Tolerance of squared distances, so that points exactly at the limit do not depend on rounding.
ROUNDING = 1e-9


def allowed_points(positions: Floats, grid: Grid, solute_distance: float) -> Bools:
    """Eq. 1: mask of points farther than `solute_distance` (A) from all atoms, (nz, ny, nx).

    positions : (n, 3) A
    """
    allowed = np.ones(grid.shape[::-1], np.bool_)
    for position in positions:
        around = [np.abs(axis - p) <= 1.001 * solute_distance for axis, p in zip(grid.axes(), position, strict=True)]
        box = np.ix_(*around[::-1])
        x, y, z = ((axis[some] - p) ** 2 for axis, some, p in zip(grid.axes(), around, position, strict=True))
        allowed[box] &= z[:, None, None] + y[:, None] + x > solute_distance**2 * (1 + ROUNDING)
    return allowed


def squared_distances(grid: Grid, point: Sequence[int]) -> Floats:
    """Return squared distances (nz, ny, nx) A^2 of all points from the point with the given indices along x, y, z."""
    x, y, z = (((np.arange(n) - i) * h) ** 2 for n, i, h in zip(grid.shape, point, grid.spacing, strict=True))
    squares: Floats = z[:, None, None] + y[:, None] + x
    return squares


def place_ions(
    potential: Floats,
    grid: Grid,
    allowed: Bools,
    charges: Sequence[float],
    ion_distance: float,
    dielectric: float = 1.0,
) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Eqs. 2 to 4: place ions one by one at the allowed point with the lowest energy.

    potential : (nz, ny, nx) kcal/mol/e, before the first ion
    charges : (m,) e, in the order of placement
    ion_distance : minimum distance between ions, A

    Returns the points, (k, 3) indices along x, y, z; the potentials before each ion, (k,) kcal/mol/e; and the potential
    (nz, ny, nx) with all ions. k < m if no allowed point was left.
    """
    potential, allowed = potential.astype(np.float64), allowed.copy()
    points, before = [], []
    for charge in charges:
        if not allowed.any():
            break
        energy = np.where(allowed, charge * potential, np.inf)
        z, y, x = np.unravel_index(int(np.argmin(energy)), energy.shape)
        points.append((x, y, z))
        before.append(potential[z, y, x])
        r2 = squared_distances(grid, (int(x), int(y), int(z)))
        allowed &= r2 > ion_distance**2 * (1 + ROUNDING)
        r2[z, y, x] = np.inf  # no contribution at the position of the ion itself
        potential += COULOMB_KCAL_A / dielectric * charge / np.sqrt(r2)
    return np.array(points, np.intp).reshape(-1, 3), np.array(before), potential
