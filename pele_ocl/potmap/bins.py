"""Atoms in cubic bins of fixed depth, for the cutoff method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from .map_slab import MapSlab
from .problem import MapProblem

LEAST_EDGE = 4.0  # A
LONGEST_BLOCK = 8.0  # edges, lest a coarse grid has more bins than atoms
# A protein in water has 6.4 atoms in a bin, seldom more than this.
DEPTH = 16
# A, beyond the cutoff: what rounding to float32 may move an atom or a point.
SLACK = 0.01


@dataclass(frozen=True, eq=False)
class Bins:
    """The atoms that a slab's points can reach.

    edge : of a bin, A
    corner : (3,) lowest corner of the first bin, A
    shape : bins along x, y, z
    counts : (n_bins,) atoms in each, x fastest; atoms4 : (n_bins, DEPTH, 4) x, y, z, charge
    overflow : (n, 4) atoms whose bin was full
    offsets : (n, 4) bins to walk from a group's own, x, y, z, 0
    middles : for each axis, the bin of the middle of each group's points
    """

    edge: float
    corner: Floats
    shape: tuple[int, ...]
    counts: Ints
    atoms4: NDArray[np.floating]
    overflow: NDArray[np.floating]
    offsets: Ints
    middles: tuple[Ints, ...]

    @classmethod
    def of(cls, slab: MapSlab, block: tuple[int, int, int]) -> Bins:
        """block : points of a group along x, y, z.

        Bins are counted from the corner of the whole map, so a slab's are those of any other way to cut it.
        """
        problem = slab.problem
        assert problem.model.cutoff is not None
        halves = (np.array(block) - 1) * problem.grid.spacing / 2
        edge = max(LEAST_EDGE, 2 * float(halves.max()) / LONGEST_BLOCK)
        offsets = reached(halves, min(problem.model.cutoff, _farthest(problem)) + SLACK, edge)
        middles = [_middles(slab, d, block[d], halves[d], edge) for d in range(3)]
        lowest = np.array([m.min() for m in middles]) + offsets.min(axis=0)
        shape = np.array([m.max() for m in middles]) + offsets.max(axis=0) - lowest + 1
        homes = np.floor((problem.positions - problem.corner) / edge).astype(np.int64) - lowest
        inside = np.flatnonzero(((homes >= 0) & (homes < shape)).all(axis=1))
        keys = np.ravel_multi_index(tuple(homes[inside].T[::-1]), tuple(shape[::-1]))
        counts, atoms4, overflow = _filled(keys, problem.atoms4[inside], int(np.prod(shape)))
        return cls(
            edge,
            problem.corner + edge * lowest,
            tuple(int(n) for n in shape),
            counts,
            atoms4,
            overflow,
            np.column_stack([offsets, np.zeros(len(offsets))]).astype(np.int32),
            tuple((m - low).astype(np.int32) for m, low in zip(middles, lowest, strict=True)),
        )


def _farthest(problem: MapProblem) -> float:
    """No atom is farther from a point of the map, A: what a longer cutoff reaches is empty."""
    last = problem.corner + (np.array(problem.grid.shape) - 1) * problem.grid.spacing
    box = np.vstack([problem.positions, problem.corner, last])
    return float(np.linalg.norm(np.ptp(box, axis=0)))


def _middles(slab: MapSlab, dimension: int, points: int, half: float, edge: float) -> NDArray[np.int64]:
    """The bin, along one axis, of the middle of each group's points."""
    first = np.arange(0, slab.shape[dimension], points) + (slab.first if dimension == 2 else 0)
    bins: NDArray[np.int64] = np.floor((first * slab.problem.grid.spacing[dimension] + half) / edge).astype(np.int64)
    return bins


def _filled(
    keys: NDArray[np.intp], atoms4: NDArray[np.floating], n_bins: int
) -> tuple[Ints, NDArray[np.floating], NDArray[np.floating]]:
    """Counts (n_bins,), bins (n_bins, DEPTH, 4) filled in the order of the atoms, and the atoms that find theirs full.

    keys : (n,) the bin of each atom
    """
    order = np.argsort(keys, kind="stable")
    keys, atoms4 = keys[order], atoms4[order]
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys)
    held = rank < DEPTH
    bins = np.zeros((n_bins, DEPTH, 4), atoms4.dtype)
    bins[keys[held], rank[held]] = atoms4[held]
    counts = np.bincount(keys[held], minlength=n_bins).astype(np.int32)
    return counts, bins, atoms4[~held]


def reached(halves: Floats, cutoff: float, edge: float) -> NDArray[np.int64]:
    """Bins (n, 3) that may hold an atom within the cutoff of a box, wherever in bin 0 the middle of the box is.

    halves : (3,) half edges of the box, A; edge : of a bin, A
    """
    return _reached(tuple(halves.tolist()), cutoff, edge)


@lru_cache(maxsize=8)
def _reached(half_edges: tuple[float, ...], cutoff: float, edge: float) -> NDArray[np.int64]:
    """As reached, kept for further frames; not to be written to."""
    halves = np.array(half_edges)
    most = int(np.ceil((cutoff + halves.max()) / edge)) + 1
    axis = np.arange(-most, most + 1)
    offsets = np.stack(np.meshgrid(axis, axis, axis, indexing="ij")[::-1], axis=-1).reshape(-1, 3)
    gaps = np.maximum((np.abs(offsets) - 1) * edge - halves, 0)
    found: NDArray[np.int64] = offsets[(gaps * gaps).sum(axis=1) < cutoff**2]
    found.flags.writeable = False
    return found
