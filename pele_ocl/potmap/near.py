"""Corrections of float32 maps at the grid points within 1 A of an atom.

The kernels compute with coordinates rounded to float32. A coordinate of 100 A is rounded by up to 4e-6 A; for a point
0.01 A from an atom this changes the potential by 4e-4, which would be the largest error of the map. This module adds,
at each of these points, the potential at the true distance minus the potential at the distance that the kernels used.
That distance is known exactly: the difference of two float32 coordinates so close to each other is not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .law import potential, slope
from .task import Task

REACH = 1.0  # A, or in wide maps, whose coordinates are rounded more, this share of their size; at most two steps
REACH_SHARE = 0.01
REACH_STEPS = 2.0
ATOMS_AT_ONCE = 2000  # so that what they need stays in a core's cache

# Flat indices of points, and what each component of the map lacks there.
Changes = tuple[NDArray[np.int64], list[NDArray[np.floating]]]


def changes(task: Task) -> Iterator[Changes]:
    """The differences, of some atoms at a time."""
    spacing = task.grid.spacing
    size = float(np.max(spacing * task.grid.shape))
    reach = min(max(REACH, REACH_SHARE * size), REACH_STEPS * float(spacing.min()))
    if task.model.min_distance >= reach:
        return
    beyond = (np.array(task.grid.shape) - 1) * spacing + reach
    inside = ((task.positions > task.corner - reach) & (task.positions < task.corner + beyond)).all(axis=1)
    atoms = np.flatnonzero(inside)
    for start in range(0, len(atoms), ATOMS_AT_ONCE):
        yield _changes_around(task, atoms[start : start + ATOMS_AT_ONCE], reach)


def add_changes(values: NDArray[np.floating], parts: Iterable[Changes]) -> None:
    """Add differences to values (components, nz, ny, nx)."""
    flat = values.reshape(len(values), -1)
    for places, lacking in parts:
        for component, change in zip(flat, lacking, strict=True):
            np.add.at(component, places, change)


def _changes_around(task: Task, atoms: NDArray[np.intp], reach: float) -> Changes:
    """The differences at the points within reach of some atoms."""
    nx, ny, _ = shape = task.grid.shape
    spacing = task.grid.spacing
    first = np.ceil((task.positions[atoms] - reach - task.corner) / spacing).astype(np.int64)
    steps = [np.arange(int(2 * reach / h) + 1) for h in spacing]
    indices = [first[:, d, None] + steps[d] for d in range(3)]  # (n, steps) of each dimension
    exact = [task.corner[d] + spacing[d] * indices[d] - task.positions[atoms, d, None] for d in range(3)]
    seen = [_seen(task, d, indices[d], task.atoms4[atoms, d, None]) for d in range(3)]
    inside = [(i >= 0) & (i < n) for i, n in zip(indices, shape, strict=True)]
    away2 = _outer(*(np.where(i, e * e, np.inf) for i, e in zip(inside, exact, strict=True)))
    near = away2 < reach**2
    # Of all atoms' steps those that are left, the atoms they are of, and which of an atom's they are.
    kept = np.flatnonzero(near)
    of = kept // near[0].size
    step = kept - near[0].size * of
    true2, rounded2 = away2.take(kept), _outer(*(s * s for s in seen)).take(kept)
    lacking = [potential(true2, task.model) - potential(rounded2, task.model)]
    if task.field:
        weights = slope(true2, task.model), slope(rounded2, task.model)
        for along, e, s in zip(np.indices(near.shape[1:])[::-1], exact, seen, strict=True):
            column = along.reshape(-1).take(step)
            lacking.append(weights[0] * e[of, column] - weights[1] * s[of, column])
    place = first @ (1, nx, nx * ny)
    beyond = _outer(steps[0][None], nx * steps[1][None], nx * ny * steps[2][None])
    charges = task.charges[atoms].take(of)
    return place.take(of) + beyond.take(step), [(charges * change).astype(task.precision) for change in lacking]


def _seen(task: Task, dimension: int, indices: NDArray[np.int64], atoms: NDArray[np.floating]) -> Floats:
    """From atom to point as the kernels see it, the difference of two rounded coordinates; anything beyond it."""
    axis = task.axis(dimension, 0, task.grid.shape[dimension]).astype(np.float64)
    seen: Floats = axis[np.clip(indices, 0, len(axis) - 1)] - atoms.astype(np.float64)
    return seen


def _outer(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    """Sums (n, steps_z, steps_y, steps_x) of numbers (n, steps) along each dimension."""
    sums: NDArray[Any] = x[:, None, None, :] + y[:, None, :, None] + z[:, :, None, None]
    return sums
