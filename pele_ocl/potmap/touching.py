"""Points of a grid that stand on an atom, where there is no potential."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms
from ..common.errors import InputError
from ..grid import Grid

APART = 1e-4  # A, as two atoms must be
# In float32, of the grid's size: coordinates that differ by less may be rounded to the same.
APART_FLOAT32 = 5e-7


def require_apart(atoms: Atoms, grid: Grid, min_distance: float, precision: str) -> None:
    """Raise InputError if a point lies on a charged atom and no minimum distance holds the potential finite."""
    distance = APART
    if precision == "float32":
        distance = max(distance, APART_FLOAT32 * float(np.max(grid.last - grid.origin)))
    if min_distance >= distance:
        return
    touching, apart2 = np.arange(len(atoms)), np.zeros(len(atoms))
    for along, origin, spacing, n in zip(atoms.positions.T, grid.origin, grid.spacing, grid.shape, strict=True):
        apart = (along if len(touching) == len(along) else along[touching]) - origin
        apart -= np.clip(np.rint(apart / spacing), 0, n - 1) * spacing
        apart2 += apart * apart
        close = np.flatnonzero(apart2 < distance**2)  # few are left of the first axis
        touching, apart2 = touching[close], apart2[close]
    touching = touching[atoms.charges[touching] != 0]
    if len(touching) == 0:
        return
    atom = int(touching[0])
    point = np.clip(np.round(grid.index(atoms.positions[atom])), 0, np.array(grid.shape) - 1).astype(np.int64)
    i, j, k = (int(n) for n in point)
    x, y, z = grid.position(point)
    raise InputError(
        f"grid point ({i}, {j}, {k}) at {x:g}, {y:g}, {z:g} A stands on {atoms.describe(atom)}, where the potential is "
        "infinite; choose another spacing or origin, or give points near atoms the potential of a minimum distance "
        "(`min_distance=1`, say)"
    )
