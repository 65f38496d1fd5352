"""What rounding a coordinate to float32 costs the points next to an atom, put right.

A coordinate of 100 A is rounded by up to 4e-6 A. At a point 0.01 A from the atom that is 4e-4 of its potential, which
would be the largest error of a whole map. So the few points near each atom get the difference between the potential at
the true distance and at the rounded one, as the kernels saw it: they subtract two float32 numbers this close exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..reference.potmap import potential, slope
from .task import Task

REACH = 1.0  # A, or in wide maps, whose coordinates are rounded more, this share of their size; at most two steps
REACH_SHARE = 0.01
REACH_STEPS = 2.0
ATOMS_AT_ONCE = 10_000


def correct(task: Task, values: NDArray[np.floating]) -> None:
    """Add the differences to values (components, nz, ny, nx)."""
    spacing = task.grid.spacing
    size = float(np.max(spacing * task.grid.shape))
    reach = min(max(REACH, REACH_SHARE * size), REACH_STEPS * float(spacing.min()))
    if task.model.min_distance >= reach:
        return
    beyond = (np.array(task.grid.shape) - 1) * spacing + reach
    inside = ((task.positions > task.corner - reach) & (task.positions < task.corner + beyond)).all(axis=1)
    atoms = np.flatnonzero(inside)
    for start in range(0, len(atoms), ATOMS_AT_ONCE):
        _correct_around(task, atoms[start : start + ATOMS_AT_ONCE], reach, values)


def _correct_around(task: Task, atoms: NDArray[np.intp], reach: float, values: NDArray[np.floating]) -> None:
    """The same for some of the atoms."""
    spacing, shape = task.grid.spacing, np.array(task.grid.shape)
    first = np.ceil((task.positions[atoms] - reach - task.corner) / spacing).astype(np.int64)
    steps = [np.arange(int(2 * reach / h) + 1) for h in spacing]
    indices = [first[:, d, None] + steps[d] for d in range(3)]  # (n, steps) of each dimension
    exact = [task.corner[d] + spacing[d] * indices[d] - task.positions[atoms, d, None] for d in range(3)]
    near = _outer(*(e * e for e in exact)) < reach**2
    for d in range(3):
        near &= _along(d, (indices[d] >= 0) & (indices[d] < shape[d]))
    which, iz, iy, ix = np.nonzero(near)
    places = indices[2][which, iz], indices[1][which, iy], indices[0][which, ix]
    true = np.stack([exact[0][which, ix], exact[1][which, iy], exact[2][which, iz]])
    rounded = np.stack([_seen(task, d, places[2 - d], task.atoms4[atoms[which], d]) for d in range(3)])
    charges = task.charges[atoms[which]]
    true2, rounded2 = (true * true).sum(axis=0), (rounded * rounded).sum(axis=0)
    changes = [potential(true2, task.model) - potential(rounded2, task.model)]
    if task.field:
        changes += list(slope(true2, task.model) * true - slope(rounded2, task.model) * rounded)
    flat = np.ravel_multi_index(places, values.shape[1:])
    for component, change in zip(values, changes, strict=True):
        np.add.at(component.reshape(-1), flat, (charges * change).astype(values.dtype))


def _seen(task: Task, dimension: int, indices: NDArray[np.int64], atoms: NDArray[np.floating]) -> Floats:
    """From atom to point as the kernels see it, the difference of two rounded coordinates."""
    axis = task.axis(dimension, 0, task.grid.shape[dimension]).astype(np.float64)
    seen: Floats = axis[indices] - atoms.astype(np.float64)
    return seen


def _along(dimension: int, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n, steps) of one dimension as (n, z, y, x)."""
    shape = [len(values), 1, 1, 1]
    shape[3 - dimension] = values.shape[1]
    return values.reshape(shape)


def _outer(x: Floats, y: Floats, z: Floats) -> Floats:
    """Sums (n, steps_z, steps_y, steps_x) of squares (n, steps) along each dimension."""
    return x[:, None, None, :] + y[:, None, :, None] + z[:, :, None, None]
