"""Corrections of float32 maps at the grid points within 1 A of an atom.

The kernels compute with coordinates rounded to float32. A coordinate of 100 A is rounded by up to 4e-6 A; 0.01 A from
an atom this changes the potential by a share of 4e-4, which would be the largest error of the map. This module adds, at
each of these points, the potential at the true distance minus the potential at the distance that the kernels used.
That distance is known exactly: the difference of two float32 coordinates so close to each other is not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .law import potential, slope
from .problem import MapProblem

REACH = 1.0  # A, or in wide maps, whose coordinates are rounded more, this share of their size; at most two steps
REACH_SHARE = 0.01
REACH_STEPS = 2.0
ATOMS_AT_ONCE = 2000  # so that what they need stays in a core's cache

# Flat indices of points, and what is added there to each component of the map.
Corrections = tuple[NDArray[np.int64], list[NDArray[np.floating]]]


def corrections(problem: MapProblem) -> Iterator[Corrections]:
    """The differences, of some atoms at a time."""
    spacing = problem.grid.spacing
    size = float(np.max(spacing * problem.grid.shape))
    reach = min(max(REACH, REACH_SHARE * size), REACH_STEPS * float(spacing.min()))
    if problem.model.min_distance >= reach:
        return
    beyond = (np.array(problem.grid.shape) - 1) * spacing + reach
    inside = ((problem.positions > problem.corner - reach) & (problem.positions < problem.corner + beyond)).all(axis=1)
    atoms = np.flatnonzero(inside)
    for start in range(0, len(atoms), ATOMS_AT_ONCE):
        yield _corrections_around(problem, atoms[start : start + ATOMS_AT_ONCE], reach)


def add_corrections(values: NDArray[np.floating], parts: Iterable[Corrections]) -> None:
    """Add differences to values (components, nz, ny, nx)."""
    flat = values.reshape(len(values), -1)
    for points, lacking in parts:
        for component, change in zip(flat, lacking, strict=True):
            np.add.at(component, points, change)


def _corrections_around(problem: MapProblem, atoms: NDArray[np.intp], reach: float) -> Corrections:
    """The differences at the points within reach of some atoms."""
    nx, ny, _ = shape = problem.grid.shape
    spacing = problem.grid.spacing
    first = np.ceil((problem.positions[atoms] - reach - problem.corner) / spacing).astype(np.int64)
    steps = [np.arange(int(2 * reach / h) + 1) for h in spacing]
    indices = [first[:, d, None] + steps[d] for d in range(3)]  # (n, steps) of each dimension
    exact = [problem.corner[d] + spacing[d] * indices[d] - problem.positions[atoms, d, None] for d in range(3)]
    seen = [_seen(problem, d, indices[d], problem.atoms4[atoms, d, None]) for d in range(3)]
    inside = [(i >= 0) & (i < n) for i, n in zip(indices, shape, strict=True)]
    away2 = _outer(*(np.where(i, e * e, np.inf) for i, e in zip(inside, exact, strict=True)))
    within = away2 < reach**2
    # Of all atoms' steps those that are left, the atoms they are of, and which of an atom's they are.
    kept = np.flatnonzero(within)
    of = kept // within[0].size
    step = kept - within[0].size * of
    true2, rounded2 = away2.take(kept), _outer(*(s * s for s in seen)).take(kept)
    lacking = [potential(true2, problem.model) - potential(rounded2, problem.model)]
    if problem.field:
        weights = slope(true2, problem.model), slope(rounded2, problem.model)
        for along, e, s in zip(np.indices(within.shape[1:])[::-1], exact, seen, strict=True):
            column = along.reshape(-1).take(step)
            lacking.append(weights[0] * e[of, column] - weights[1] * s[of, column])
    point = first @ (1, nx, nx * ny)
    beyond = _outer(steps[0][None], nx * steps[1][None], nx * ny * steps[2][None])
    charges = problem.charges[atoms].take(of)
    return point.take(of) + beyond.take(step), [(charges * change).astype(problem.precision) for change in lacking]


def _seen(problem: MapProblem, dimension: int, indices: NDArray[np.int64], atoms: NDArray[np.floating]) -> Floats:
    """From atom to point as the kernels see it, the difference of two rounded coordinates; anything beyond it."""
    axis = problem.axis(dimension, 0, problem.grid.shape[dimension]).astype(np.float64)
    seen: Floats = axis[np.clip(indices, 0, len(axis) - 1)] - atoms.astype(np.float64)
    return seen


def _outer(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    """Sums (n, steps_z, steps_y, steps_x) of numbers (n, steps) along each dimension."""
    sums: NDArray[Any] = x[:, None, None, :] + y[:, None, :, None] + z[:, :, None, None]
    return sums
