"""Search for atoms near others with a cell list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..labels import Floats

Bools = NDArray[np.bool_]

_MOST_CELLS = 4_000_000
_LEAST_EDGE = 2.0  # minimum edge of a cell, A


def near(positions: Floats, group: Bools, distance: float) -> Bools:
    """Return a mask (n,) of the atoms within `distance` (A) of an atom in the group, including the group.

    positions : (n, 3) A; group : (n,) mask
    """
    found: Bools = group.copy()
    if not group.any():
        return found
    cells = _Cells(positions[group], distance)
    waiting = np.flatnonzero(~group)
    waiting = waiting[cells.around(positions[waiting])]
    home = cells.of(positions[waiting])
    sure, unsure = cells.reached(home)
    found[waiting[sure]] = True
    waiting, home = waiting[unsure], home[unsure]
    for offset in cells.offsets(sure=False):
        hits = cells.hits(positions[waiting], home + offset)
        found[waiting[hits]] = True
        waiting, home = waiting[~hits], home[~hits]
        if not len(waiting):
            break
    return found


class _Cells:
    """Cell list of points, with a margin of `distance` around them."""

    def __init__(self, points: Floats, distance: float) -> None:
        low, high = points.min(axis=0) - distance, points.max(axis=0) + distance
        edge = max(distance / 4, _LEAST_EDGE)
        while np.prod(np.floor((high - low) / edge) + 1) > _MOST_CELLS:
            edge *= 1.25
        self._low, self._high, self._edge, self._distance = low, high, edge, distance
        self._shape = (np.floor((high - low) / edge) + 1).astype(np.int64)
        keys = self._keys(self.of(points))
        order = np.argsort(keys, kind="stable")
        self._points = points[order]
        self._counts = np.bincount(keys, minlength=int(np.prod(self._shape)))
        self._starts = np.cumsum(self._counts) - self._counts

    def around(self, points: Floats) -> Bools:
        """Return a mask of the points (k, 3) inside the grid."""
        inside: Bools = ((points >= self._low) & (points <= self._high)).all(axis=1)
        return inside

    def of(self, points: Floats) -> NDArray[np.int64]:
        """Return the cell indices (k, 3) of points in the grid."""
        cells: NDArray[np.int64] = np.floor((points - self._low) / self._edge).astype(np.int64)
        return cells

    def offsets(self, *, sure: bool) -> list[NDArray[np.int64]]:
        """List offsets (3,) to cells whose points are all within the distance (`sure`), or only some, nearest first."""
        reach = int(np.ceil(self._distance / self._edge))
        steps = np.indices((2 * reach + 1,) * 3).reshape(3, -1).T - reach
        nearest = np.linalg.norm(np.maximum(np.abs(steps) - 1, 0), axis=1) * self._edge
        farthest = np.linalg.norm(np.abs(steps) + 1, axis=1) * self._edge
        wanted = farthest < self._distance if sure else (nearest <= self._distance) & (farthest >= self._distance)
        return list(steps[wanted][np.argsort(farthest[wanted], kind="stable")])

    def reached(self, cells: NDArray[np.int64]) -> tuple[Bools, Bools]:
        """Return masks (k,) of cells (k, 3) that are entirely near a point, and of others that may be partly near."""
        occupied = np.argwhere(self._counts.reshape(self._shape))
        marks = []
        for sure in (True, False):
            marked = np.zeros(self._shape, np.bool_)
            for offset in self.offsets(sure=sure):
                there = occupied + offset
                marked[tuple(there[self._inside(there)].T)] = True
            marks.append(marked[tuple(cells.T)])
        return marks[0], marks[1] & ~marks[0]

    def hits(self, positions: Floats, cells: NDArray[np.int64]) -> Bools:
        """Return a mask of the positions (k, 3) that are near a point in the corresponding cell (k, 3)."""
        inside = self._inside(cells)
        keys = np.where(inside, self._keys(cells), 0)
        starts, counts = self._starts[keys], np.where(inside, self._counts[keys], 0)
        hits = np.zeros(len(positions), np.bool_)
        left = np.flatnonzero(counts)
        for number in range(int(counts.max(initial=0))):
            left = left[(counts[left] > number) & ~hits[left]]
            apart = positions[left] - self._points[starts[left] + number]
            hits[left] = np.einsum("ij,ij->i", apart, apart) <= self._distance**2
        return hits

    def _inside(self, cells: NDArray[np.int64]) -> Bools:
        inside: Bools = ((cells >= 0) & (cells < self._shape)).all(axis=1)
        return inside

    def _keys(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        keys: NDArray[np.int64] = (cells[:, 0] * self._shape[1] + cells[:, 1]) * self._shape[2] + cells[:, 2]
        return keys
