"""Points that are closer than a distance, found among many: two of them, or all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Directions at right angles to each other and aslant to the axes; along each of them close points are close, too.
LINES = np.array([[2, 3, 6], [3, -6, 2], [6, 2, -3]]) / 7


@np.errstate(over="ignore", invalid="ignore")  # points at 1e308 A, of which infinity is near enough
def close_pair(positions: Floats, distance: float) -> tuple[int, int] | None:
    """Two points closer than `distance`, or None. positions : (n, 3) A"""
    candidates = np.arange(len(positions))
    for line in LINES:
        along = np.einsum("ij,j->i", np.take(positions, candidates, axis=0), line)  # @ would wake threads that spin
        candidates = candidates[_neighboured(along, distance)]
    if not len(candidates):
        return None
    # Two points that close share a cell of twice that edge in one of the eight grids half a cell apart.
    points = positions[candidates]
    for shift in np.ndindex(2, 2, 2):
        cells = np.floor(points / (2 * distance) + np.array(shift) / 2)
        order = np.lexsort(cells.T)
        for lag in range(1, len(order)):
            first, second = order[:-lag], order[lag:]
            together = (cells[first] == cells[second]).all(axis=1)
            if not together.any():
                break
            first, second = first[together], second[together]
            close = np.linalg.norm(points[first] - points[second], axis=1) < distance
            if close.any():
                return int(candidates[first[close][0]]), int(candidates[second[close][0]])
    return None


@np.errstate(over="ignore", invalid="ignore")
def close_pairs(positions: Floats, distance: float) -> NDArray[np.int32]:
    """All pairs (k, 2) of points closer than `distance`. positions : (n, 3) A"""
    order = np.argsort(positions[:, 0], kind="stable")
    points, found = positions[order], [np.empty((0, 2), np.intp)]
    for lag in range(1, len(order)):
        apart = points[lag:] - points[:-lag]
        near = np.flatnonzero(apart[:, 0] < distance)
        if not len(near):
            break
        near = near[(apart[near] ** 2).sum(axis=1) < distance**2]
        found.append(np.stack([order[near], order[near + lag]], axis=1))
    return np.concatenate(found).astype(np.int32)


def _neighboured(along: Floats, distance: float) -> NDArray[np.intp]:
    """Points whose projection on a line has another one within the distance: all that can be close to another point."""
    order = np.argsort(along)
    close = np.diff(along[order]) < 1.001 * distance
    return order[np.append(close, False) | np.insert(close, 0, False)] if len(order) > 1 else order[:0]
