"""Points of a grid that stand on an atom, where there is no potential."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms
from ..errors import InputError
from ..grid import Grid

APART = 1e-4  # A, as two atoms must be
# In float32, of the grid's size: coordinates that differ by less may be rounded to the same.
APART_FLOAT32 = 5e-7


def require_apart(atoms: Atoms, grid: Grid, min_distance: float, precision: str) -> None:
    """Raise InputError where a point stands on a charged atom and no minimum distance holds the potential finite."""
    distance = APART
    if precision == "float32":
        distance = max(distance, APART_FLOAT32 * float(np.max(grid.last - grid.origin)))
    if min_distance >= distance:
        return
    nearest = np.clip(np.round(grid.index(atoms.positions)), 0, np.array(grid.shape) - 1).astype(np.int64)
    apart = np.linalg.norm(grid.position(nearest) - atoms.positions, axis=1)
    touching = np.flatnonzero((apart < distance) & (atoms.charges != 0))
    if len(touching) == 0:
        return
    atom = int(touching[0])
    i, j, k = (int(n) for n in nearest[atom])
    x, y, z = grid.position(nearest[atom])
    raise InputError(
        f"grid point ({i}, {j}, {k}) at {x:g}, {y:g}, {z:g} A stands on {atoms.describe(atom)}, where the potential is "
        "infinite; choose another spacing or origin, or give points near atoms the potential of a minimum distance "
        "(--min-distance 1, say)"
    )
