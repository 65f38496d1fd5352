"""Two points that are closer than a distance, found among many."""

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
        candidates = candidates[_neighboured(np.take(positions, candidates, axis=0) @ line, distance)]
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


def _neighboured(along: Floats, distance: float) -> NDArray[np.intp]:
    """Points whose projection on a line has another one within the distance: all that can be close to another point."""
    order = np.argsort(along)
    close = np.diff(along[order]) < 1.001 * distance
    return order[np.append(close, False) | np.insert(close, 0, False)] if len(order) > 1 else order[:0]
