"""Search for pairs of points that are closer than a distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Orthogonal directions oblique to the axes; points that are close are also close along each of them.
LINES = np.array([[2, 3, 6], [3, -6, 2], [6, 2, -3]]) / 7
# Odd factors of the hash of a cell's indices. A hash collision only costs one additional distance.
HASH = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


@np.errstate(over="ignore", invalid="ignore")  # for coordinates of 1e308 A, infinity is accurate enough
def close_pair(positions: Floats, distance: float) -> tuple[int, int] | None:
    """Find two points closer than `distance`, or None. positions : (n, 3) A"""
    candidates = np.arange(len(positions))
    for line in LINES:  # of few points or a short distance, most have no neighbour along a line
        left = candidates[_neighboured(np.take(positions, candidates, axis=0) @ line, distance)]
        candidates, are_many = left, 2 * len(left) > len(candidates)
        if are_many:
            break
    if not len(candidates):
        return None
    points = positions[candidates]
    steps = np.floor(points.T / distance).astype(np.int64)
    # Two such points share a cell of edge 2 * distance in at least one of eight grids shifted by half a cell.
    for shift in np.ndindex(2, 2, 2):
        x, y, z = (
            (along + half >> 1).view(np.uint64) * factor for along, half, factor in zip(steps, shift, HASH, strict=True)
        )
        cells = x ^ y ^ z
        ordered = np.sort(cells)
        if not (ordered[1:] == ordered[:-1]).any():
            continue
        order = np.argsort(cells, kind="stable")
        for lag in range(1, len(order)):
            first, second = order[:-lag], order[lag:]
            together = cells[first] == cells[second]
            if not together.any():
                break
            first, second = first[together], second[together]
            close = np.linalg.norm(points[first] - points[second], axis=1) < distance
            if close.any():
                return int(candidates[first[close][0]]), int(candidates[second[close][0]])
    return None


@np.errstate(over="ignore", invalid="ignore")
def close_pairs(positions: Floats, distance: float) -> NDArray[np.int32]:
    """Find all pairs (k, 2) of points closer than `distance`. positions : (n, 3) A"""
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
    """Return the indices of points whose coordinate along a line is within the distance of another point's."""
    order = np.argsort(along)
    close = np.diff(along[order]) < 1.001 * distance
    return order[np.append(close, False) | np.append(False, close)] if len(order) > 1 else order[:0]
