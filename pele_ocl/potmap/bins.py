"""Atoms sorted into cubic bins, for the cutoff method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from .problem import MapProblem, packed4
from .slabs import MapSlab, Scratch
from .sorting import BINS, DeviceAtoms

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue


LEAST_EDGE = 4.0  # A
SPARSE = 4.0  # average atoms per bin; with more, the cost of atoms beyond the cutoff outweighs the lower number of bins
LONGEST_BLOCK = 8.0  # in bin edges; prevents more bins than atoms on coarse grids
# A, added to the cutoff to allow for rounding of coordinates to float32.
SLACK = 0.01


@dataclass(frozen=True, eq=False)
class BinGrid:
    """Grid of bins around a map, independent of the atoms in them.

    block : points per group along x, y, z
    edge : of a bin, A; reach : cutoff distance, A
    corner : (3,) lowest corner of the first bin, A; lowest : (3,) index of this bin relative to the corner of the map
    shape : number of bins along x, y, z
    offsets : (n, 4) bins to visit, relative to the group's bin, x, y, z, 0
    """

    block: tuple[int, int, int]
    edge: float
    reach: float
    corner: Floats
    lowest: NDArray[np.int64]
    shape: NDArray[np.int64]
    offsets: Ints

    @classmethod
    def of(cls, problem: MapProblem, block: tuple[int, int, int]) -> BinGrid:
        """block : points per group along x, y, z"""
        halves, reach = _halves(problem, block), _reach(problem)
        edge = max(LEAST_EDGE, 2 * float(halves.max()) / LONGEST_BLOCK, min(reach / 2, _sparse_edge(problem)))
        offsets = reached(halves, reach + SLACK, edge)
        last_middle = np.floor(((np.array(problem.grid.shape) - 1) * problem.grid.spacing + halves) / edge)
        lowest = np.floor(halves / edge).astype(np.int64) + offsets.min(axis=0)
        shape = last_middle.astype(np.int64) + offsets.max(axis=0) - lowest + 1
        corner: Floats = problem.corner + edge * lowest
        return cls(block, edge, reach, corner, lowest, shape, packed4(*offsets.T, dtype=np.int32))

    def walked(self, problem: MapProblem) -> float:
        """Estimate the average number of atoms that a group visits."""
        return len(self.offsets) * self.edge**3 * problem.near_density

    def serves(self, problem: MapProblem) -> bool:
        """Return whether the bins can be used for a problem that differs only in the positions."""
        return _reach(problem) == self.reach

    def middles(self, slab: MapSlab) -> list[Ints]:
        """Return for each axis the bin of the midpoint of each group in a slab."""
        found = []
        for dimension, (spacing, half) in enumerate(
            zip(slab.problem.grid.spacing, _halves(slab.problem, self.block), strict=True)
        ):
            first = np.arange(0, slab.shape[dimension], self.block[dimension]) + (slab.first if dimension == 2 else 0)
            bins = np.floor((first * spacing + half) / self.edge) - self.lowest[dimension]
            found.append(bins.astype(np.int32))
        return found


@dataclass(frozen=True, eq=False)
class Bins:
    """Atoms on a device, sorted by bin.

    starts : (n_bins + 1,) first atom of each bin, x fastest
    atoms, rests : (n, 4) x, y, z, charge, and the rounding errors of x, y, z
    scratch : memory of the buffers, which other maps reuse once it is deleted
    """

    starts: Buffer
    atoms: Buffer
    rests: Buffer
    scratch: Scratch

    @classmethod
    def of(cls, queue: Queue, atoms: DeviceAtoms, grid: BinGrid) -> Bins:
        """Sort atoms into bins."""
        scratch, n_bins = atoms.scratch, int(np.prod(grid.shape))
        sorted_atoms = scratch(queue, "atoms of bins", 4 * atoms.n_atoms)
        rests = scratch(queue, "rests of bins", 4 * atoms.n_atoms) if atoms.has_rests else sorted_atoms
        starts = scratch(queue, "starts of bins", n_bins + 1, np.int32)
        atoms.sort(
            queue, starts, BINS, ("count_bins", "sort_bins"), n_bins, {"n_bins": queue.int4(*grid.shape.tolist())},
            {"corner": queue.vector4(*grid.corner, grid.edge)}, {"atoms": sorted_atoms, "atom_rests": rests},
        )  # fmt: skip
        return cls(starts, sorted_atoms, rests, scratch)


def _reach(problem: MapProblem) -> float:
    """Return the cutoff, at most the diagonal of the box, A."""
    assert problem.model.cutoff is not None
    low, high = problem.box
    return min(problem.model.cutoff, float(np.linalg.norm(high - low)))


def _sparse_edge(problem: MapProblem) -> float:
    """Return the edge of bins that contain SPARSE atoms on average, A."""
    low, high = problem.box
    volume = float(np.prod(np.maximum(high - low, LEAST_EDGE)))
    return float(np.cbrt(volume * SPARSE / max(1, problem.n_atoms)))


def _halves(problem: MapProblem, block: tuple[int, int, int]) -> Floats:
    """Return half the edges of the box of a group's points, A."""
    halves: Floats = (np.array(block) - 1) * problem.grid.spacing / 2
    return halves


def sorted_by_cell(cells: Sequence[NDArray[Any]], shape: NDArray[np.int64]) -> tuple[NDArray[np.intp], Ints]:
    """Sort atoms by cell, x fastest, with a stable sort.

    cells : integer coordinates of each atom's cell along x, y and z

    Returns the order of the atoms, and the first atom of each cell, (n_cells + 1,).
    """
    nx, ny, nz = (int(n) for n in shape)
    numbers, n_cells = np.multiply(cells[2], ny, dtype=np.float64), nx * ny * nz
    numbers += cells[1]
    numbers *= nx
    numbers += cells[0]
    # NumPy uses radix sort for 16 bits, which is ten times faster.
    keys = numbers.astype(np.uint16 if n_cells <= 1 << 16 else np.int64)
    counts = np.bincount(keys, minlength=n_cells)
    return np.argsort(keys, kind="stable"), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def reached(halves: Floats, cutoff: float, edge: float) -> NDArray[np.int64]:
    """List bins (n, 3) that may contain an atom within the cutoff of a box centred anywhere in bin 0.

    halves : (3,) half the edges of the box, A; edge : of a bin, A
    """
    return _reached(tuple(halves.tolist()), cutoff, edge)


@lru_cache(maxsize=8)
def _reached(half_edges: tuple[float, ...], cutoff: float, edge: float) -> NDArray[np.int64]:
    """List bins as in `reached`; cached and read-only."""
    halves = np.array(half_edges)
    most = int(np.ceil((cutoff + halves.max()) / edge)) + 1
    axis = np.arange(-most, most + 1)
    offsets = np.stack(np.meshgrid(axis, axis, axis, indexing="ij")[::-1], axis=-1).reshape(-1, 3)
    gaps = np.maximum((np.abs(offsets) - 1) * edge - halves, 0)
    found: NDArray[np.int64] = offsets[(gaps * gaps).sum(axis=1) < cutoff**2]
    found.flags.writeable = False
    return found


class NearTables:
    """Bins around a map and lists of bins for each group of points; independent of the positions.

    grid : the bins
    """

    def __init__(self, queue: Queue, problem: MapProblem, block: tuple[int, int, int]) -> None:
        """block : points per group along x, y, z"""
        self.grid = grid = BinGrid.of(problem, block)
        self._places = dict(
            corner=queue.vector4(*grid.corner, grid.edge), n_bins=queue.int4(*grid.shape.tolist()),
            n_offsets=len(grid.offsets), offsets=queue.table(grid.offsets, np.int32),
        )  # fmt: skip
        self._slab: tuple[int, ...] = ()
        self._arguments: dict[str, Any] = {}

    def arguments(self, queue: Queue, slab: MapSlab) -> dict[str, Any]:
        """Return the arguments of cl/potmap/cutoff.cl for a slab and its bins; cached for the same slab."""
        if self._slab != (slab.first, *slab.shape):
            names = ("middle_x", "middle_y", "middle_z")
            middles = (queue.table(each, np.int32) for each in self.grid.middles(slab))
            self._arguments = {**slab.rests(queue), **self._places, **dict(zip(names, middles, strict=True))}
            self._slab = (slab.first, *slab.shape)
        return self._arguments
