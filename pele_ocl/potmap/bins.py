"""Atoms sorted into cubic bins, for the cutoff method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from .map_slab import MapSlab
from .problem import MapProblem

LEAST_EDGE = 4.0  # A
LONGEST_BLOCK = 8.0  # edges, lest a coarse grid has more bins than atoms
# A, beyond the cutoff: what rounding to float32 may move an atom or a point.
SLACK = 0.01


@dataclass(frozen=True, eq=False)
class Bins:
    """The atoms that the points of a map can reach, bin after bin.

    block : points of a group along x, y, z
    edge : of a bin, A
    lowest : (3,) the first bin, counted from the corner of the map; corner : (3,) its lowest corner, A
    shape : bins along x, y, z
    starts : (n_bins + 1,) the first atom of each, x fastest
    atoms4, rests4 : (n, 4) of the problem, in this order
    offsets : (n, 4) bins to walk from a group's own, x, y, z, 0
    """

    problem: MapProblem
    block: tuple[int, int, int]
    edge: float
    lowest: NDArray[np.int64]
    shape: NDArray[np.int64]
    starts: Ints
    atoms4: NDArray[np.floating]
    rests4: NDArray[np.floating]
    offsets: Ints

    @classmethod
    def of(cls, problem: MapProblem, block: tuple[int, int, int]) -> Bins:
        """block : points of a group along x, y, z"""
        assert problem.model.cutoff is not None
        halves = _halves(problem, block)
        edge = max(LEAST_EDGE, 2 * float(halves.max()) / LONGEST_BLOCK)
        low, high = problem.box
        farthest = float(np.linalg.norm(high - low))  # what a longer cutoff reaches is empty
        offsets = reached(halves, min(problem.model.cutoff, farthest) + SLACK, edge)
        last_middle = np.floor(((np.array(problem.grid.shape) - 1) * problem.grid.spacing + halves) / edge)
        lowest = np.floor(halves / edge).astype(np.int64) + offsets.min(axis=0)
        shape = last_middle.astype(np.int64) + offsets.max(axis=0) - lowest + 1
        kept, starts = _homes(problem, edge, lowest, shape)
        atoms4, rests4 = (each.take(kept, axis=0) for each in (problem.atoms4, problem.rests4))
        return cls(
            problem, block, edge, lowest, shape, starts, atoms4, rests4,
            np.column_stack([offsets, np.zeros(len(offsets))]).astype(np.int32),
        )  # fmt: skip

    @property
    def corner(self) -> Floats:
        corner: Floats = self.problem.corner + self.edge * self.lowest
        return corner

    @property
    def atoms_walked(self) -> float:
        """Atoms in the bins that a group walks, on average."""
        return len(self.offsets) * len(self.atoms4) / int(np.prod(self.shape))

    def middles(self, slab: MapSlab) -> list[Ints]:
        """For each axis, the bin of the middle of each group's points in a slab."""
        found = []
        for dimension, (spacing, half) in enumerate(
            zip(self.problem.grid.spacing, _halves(self.problem, self.block), strict=True)
        ):
            first = np.arange(0, slab.shape[dimension], self.block[dimension]) + (slab.first if dimension == 2 else 0)
            bins = np.floor((first * spacing + half) / self.edge) - self.lowest[dimension]
            found.append(bins.astype(np.int32))
        return found


def _halves(problem: MapProblem, block: tuple[int, int, int]) -> Floats:
    """Half the edges of a group's points, A."""
    halves: Floats = (np.array(block) - 1) * problem.grid.spacing / 2
    return halves


def _homes(
    problem: MapProblem, edge: float, lowest: NDArray[np.int64], shape: NDArray[np.int64]
) -> tuple[NDArray[np.intp], Ints]:
    """The atoms that stand in the bins, in the order of these, and (n_bins + 1,) where those of each begin."""
    cells, inside = [], np.ones(problem.n_atoms, bool)
    for along, corner, low, n in zip(problem.positions.T, problem.corner, lowest, shape, strict=True):
        cells.append(np.floor((along - corner) / edge).astype(np.int64) - low)
        inside &= (cells[-1] >= 0) & (cells[-1] < n)
    if inside.all():
        return sorted_by_cell(cells, shape)
    kept = np.flatnonzero(inside)
    order, starts = sorted_by_cell([along[kept] for along in cells], shape)
    return kept[order], starts


def sorted_by_cell(cells: Sequence[NDArray[np.integer]], shape: NDArray[np.int64]) -> tuple[NDArray[np.intp], Ints]:
    """The order of atoms by their cells, x fastest, and (n_cells + 1,) where those of each begin.

    cells : along x, y and z, of each atom; atoms of a cell stay in their order
    """
    nx, ny, nz = (int(n) for n in shape)
    keys = (cells[2].astype(np.int64) * ny + cells[1]) * nx + cells[0]
    n_cells = nx * ny * nz
    if n_cells <= 1 << 16:  # NumPy sorts these by their digits, ten times sooner
        keys = keys.astype(np.uint16)
    counts = np.bincount(keys, minlength=n_cells)
    return np.argsort(keys, kind="stable"), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


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
