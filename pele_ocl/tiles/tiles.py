"""Atoms sorted in space, along a Hilbert curve or by a k-d tree, and divided into tiles; order of work-groups.

Each tile has an origin and a bounding box around it. Since consecutive atoms are close in space, kernels can decide
from two boxes whether all pairs of two tiles are far apart. Positions relative to a tile's origin keep their precision
in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from ..plan.conformations import ORIGIN_STEP

HILBERT_BITS = 16


# A tile ends where the curve jumps farther than this (A), so that offsets are small even in sparse structures.
LONGEST_STEP = 16.0
# The same for consecutive leaves of a k-d tree; larger, since cutting a node breaks the tree.
LONGEST_NESTED_STEP = 32.0


Begins = Sequence[int] | NDArray[np.intp]

LEAST_PARTS = 16  # enough to balance the load


def cpu_parts(units: int) -> int:
    """Largest number of parts into which tiles are divided on a CPU, a multiple of its units."""
    return units * -(-LEAST_PARTS // units)


def tried_parts(units: int) -> tuple[int, int, int]:
    """Numbers of parts that `tune` tries on a CPU."""
    most = cpu_parts(units)
    return most // 2, most, 2 * most


@dataclass(frozen=True, eq=False)
class Tiles:
    """n atoms in n_tiles tiles of up to `size`; unused slots of a tile have copies of its last atom.

    order : (n_slots,) atom of each slot, n_slots = n_tiles * size
    counts : (n_tiles,) number of atoms in each tile
    offsets : (n_slots, 3) position relative to the origin of the slot's tile, A; columns are contiguous
    origins : (n_tiles, 3) A, relative to the centre of the structure
    extents : (n_tiles, 3) half edges of the bounding box around the origin, A
    first_frozen : first of the tiles that contain only frozen atoms; n_tiles if there are none
    """

    size: int
    order: NDArray[np.intp]
    counts: Ints
    offsets: Floats
    origins: Floats
    extents: Floats
    first_frozen: int

    @classmethod
    def of(cls, positions: Floats, size: int, frozen: NDArray[np.bool_] | None = None) -> Tiles:
        """Sort positions (n, 3) A along a Hilbert curve and divide them into tiles of at most `size` atoms.

        frozen : (n,) atoms that never move; they come last, in separate tiles
        """
        order = np.argsort(hilbert_keys(positions), kind="stable")
        n_free = len(order)
        if frozen is not None:
            order, n_free = order[np.argsort(frozen[order], kind="stable")], n_free - int(frozen.sum())
        begins = [n_free] if 0 < n_free < len(order) else []
        return cls._ordered(positions, size, order, begins, n_free, LONGEST_STEP)

    @classmethod
    def nested(cls, positions: Floats, size: int, leaf: int) -> Tiles:
        """Sort positions (n, 3) A by a k-d tree with leaves of `leaf` atoms; each node of `size` atoms is a tile.

        Two, four, eight, ... consecutive tiles have smaller boxes than along a curve. A node whose atoms are far apart
        is divided into several tiles; later tiles are still nodes, but pairs of consecutive ones may not be.
        """
        n = len(positions)
        begins = np.arange(size, n, size)
        return cls._ordered(positions, size, kd_order(positions, leaf), begins, n, LONGEST_NESTED_STEP)

    @classmethod
    def _ordered(
        cls, positions: Floats, size: int, order: NDArray[np.intp], begins: Begins, n_free: int, longest_step: float
    ) -> Tiles:  # fmt: skip
        columns = np.take(np.ascontiguousarray(positions.T), order, axis=1)
        starts, counts = _cut(columns, size, begins, longest_step)
        within = np.minimum(np.arange(size), counts[:, None] - 1)
        order = order[(starts[:, None] + within).ravel()]
        first_frozen = int(np.searchsorted(starts, n_free))
        return cls(size, order, counts.astype(np.int32), *_placed(positions, order, size), first_frozen)

    def aligned(self, row: int) -> Tiles:
        """Treat frozen tiles as moving if they share a row of tiles with moving ones."""
        tiles = copy(self)
        object.__setattr__(tiles, "first_frozen", min(len(self), -(-self.first_frozen // row) * row))
        return tiles

    def moved(self, positions: Floats) -> Tiles:
        """Return tiles with the same order of atoms at other positions, (n, 3) A."""
        tiles = copy(self)
        for name, array in zip(
            ("offsets", "origins", "extents"), _placed(positions, self.order, self.size), strict=True
        ):
            object.__setattr__(tiles, name, array)
        return tiles

    def __len__(self) -> int:
        return len(self.origins)

    @property
    def n_slots(self) -> int:
        return len(self.order)

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Mask of slots that hold an atom and not a copy, (n_slots,)."""
        used: NDArray[np.bool_] = (np.arange(self.size) < self.counts[:, None]).ravel()
        return used

    def by_slot(self, values: Floats) -> Floats:
        """Return values (n,) in the order of slots, (n_slots,); 0 in unused ones."""
        placed: Floats = np.where(self.used, values[self.order], 0.0)
        return placed

    def largest(self, values: Floats) -> Floats:
        """Return the largest of `values` (n,) in each tile, (n_tiles,)."""
        largest: Floats = values[self.order].reshape(-1, self.size).max(axis=1)
        return largest

    @cached_property
    def slots(self) -> NDArray[np.intp]:
        """Slot of each atom, (n,)."""
        used = np.flatnonzero(self.used)
        slots = np.empty(len(used), np.intp)
        slots[self.order[used]] = used
        return slots

    def scatter(self, values: NDArray[np.floating]) -> Floats:
        """Return values by slot, (n_slots,), in the order of atoms, (n,) float64."""
        result: Floats = np.take(values, self.slots).astype(np.float64)
        return result


def _placed(positions: Floats, order: NDArray[np.intp], size: int) -> tuple[Floats, Floats, Floats]:
    """Compute offsets, origins and extents of tiles. Arrays (3, n) are ten times as fast as (n, 3)."""
    columns = np.ascontiguousarray(positions.T)
    middle = (columns.min(axis=1) + columns.max(axis=1)) / 2
    tiles = np.take(columns - middle[:, None], order, axis=1).reshape(3, -1, size)
    lowest, highest = tiles.min(axis=2), tiles.max(axis=2)
    origins = np.round((lowest + highest) / 2 / ORIGIN_STEP) * ORIGIN_STEP
    extents = np.maximum(highest - origins, origins - lowest)
    return (tiles - origins[:, :, None]).reshape(3, -1).T, origins.T, extents.T


def _cut(
    columns: Floats, size: int, begins: Begins, longest_step: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # fmt: skip
    """First atom and count of each tile: runs without long steps, divided into pieces of `size`.

    begins : atoms with which a run begins in any case
    """
    steps = np.abs(np.diff(columns, axis=1)).max(axis=0, initial=0.0)
    steps[np.asarray(begins, np.intp) - 1] = np.inf
    runs = np.concatenate([[0], np.flatnonzero(steps > longest_step) + 1, [columns.shape[1]]])
    pieces = -(-np.diff(runs) // size)
    first_piece = np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = np.repeat(runs[:-1], pieces) + size * (np.arange(pieces.sum()) - first_piece)
    return starts, np.minimum(size, np.repeat(runs[1:], pieces) - starts)


def hilbert_keys(positions: Floats, bits: int = HILBERT_BITS) -> NDArray[np.uint64]:
    """Return the index of each position along a Hilbert curve through the bounding cube, (n,).

    Skilling, AIP Conf. Proc. 707, 381 (2004).

    positions : (n, 3) A
    bits : the cube is divided into 2^bits cells along an edge; at most 16
    """
    columns = np.ascontiguousarray(positions.T)
    lowest = columns.min(axis=1)
    edge = max(float((columns.max(axis=1) - lowest).max()), 1e-9)
    scaled = (columns - lowest[:, None]) * ((2**bits - 1) / edge)
    x, y, z = _to_transpose(list(scaled.astype(np.uint16)), bits)
    return _spread(x) << np.uint64(2) | _spread(y) << np.uint64(1) | _spread(z)


def _to_transpose(axes: list[NDArray[np.uint16]], bits: int) -> list[NDArray[np.uint16]]:
    """Convert coordinates to the transposed Hilbert index, Skilling's AxestoTranspose, for all points."""
    x, y, z = axes
    for bit in range(bits - 1, 0, -1):
        low = np.uint16((1 << bit) - 1)
        x ^= low & _all_bits(x, bit)
        for axis in (y, z):
            is_set = _all_bits(axis, bit)
            swapped = (x ^ axis) & low & ~is_set
            x ^= low & is_set | swapped
            axis ^= swapped
    y ^= x
    z ^= y
    # Each bit of z flips all lower bits.
    flips = z >> np.uint16(1)
    for distance in (1, 2, 4, 8):
        flips ^= flips >> np.uint16(distance)
    return [x ^ flips, y ^ flips, z ^ flips]


def _all_bits(values: NDArray[np.uint16], bit: int) -> NDArray[np.uint16]:
    """All bits if the given bit is set, otherwise 0."""
    return np.uint16(0) - (values >> np.uint16(bit) & np.uint16(1))


def _spread(values: NDArray[np.uint16]) -> NDArray[np.uint64]:
    """Insert two zeros before each bit of the values."""
    spread = values.astype(np.uint64)
    for shift, kept in ((16, 0xFF0000FF), (8, 0xF00F00F00F), (4, 0xC30C30C30C3), (2, 0x249249249249)):
        spread = (spread | spread << np.uint64(shift)) & np.uint64(kept)
    return spread


def kd_order(positions: Floats, leaf: int) -> NDArray[np.intp]:
    """Sort atoms (n,) in the order of the leaves of a k-d tree (Bentley, Commun. ACM 18, 509 (1975)).

    Each leaf but the last has `leaf` atoms. Aligned groups of 2^l consecutive leaves are nodes of the tree.

    positions : (n, 3) A
    """
    n = len(positions)
    size = leaf << max(0, (-(-n // leaf) - 1).bit_length())
    # Padding is sorted last in every box.
    columns = np.full((3, size), np.inf)
    columns[:, :n] = positions.T
    order = np.arange(size)
    while size > leaf:
        boxes = columns.reshape(3, -1, size)
        axes = _longest_axes(boxes)
        along = np.take_along_axis(boxes, axes[None, :, None], axis=0)[0]
        halves = np.argpartition(along, size // 2 - 1, axis=1)
        order = np.take_along_axis(order.reshape(-1, size), halves, axis=1)
        columns = np.take_along_axis(boxes, halves[None], axis=2)
        size //= 2
    ordered: NDArray[np.intp] = order.ravel()[order.ravel() < n]
    return ordered


def _longest_axes(boxes: Floats) -> NDArray[np.intp]:
    """Axis of each box's longest edge, from coordinates (3, n_boxes, size) A, infinite for padding."""
    highest = np.where(np.isfinite(boxes), boxes, -np.inf).max(axis=2)
    axes: NDArray[np.intp] = np.argmax(highest - boxes.min(axis=2), axis=0)
    return axes


# Devices start groups in the order of their numbers. A long group that starts late delays the next launch, so the
# longest are first (Graham, SIAM J. Appl. Math. 17, 416 (1969)): those with near tiles, whose pairs cost more. Results
# do not depend on the order. With more tiles than this there are so many groups that the last ones do not matter.
MOST_TILES = 1_000


def born_dispatch(tiles: Tiles, row: int, tiles_per_chunk: int) -> NDArray[np.int32]:
    """Rows and chunks of tiles for the groups of cl/solvent/tiled.cl, (n_groups, 2). row : tiles in a row"""
    n_tiles = len(tiles)
    if n_tiles > MOST_TILES:
        return _longest_first(np.zeros((-(-n_tiles // row), -(-n_tiles // tiles_per_chunk))))
    return _longest_first(_over(_over(_nearness(tiles), row, 0), tiles_per_chunk, 1))


def ring_dispatch(tiles: Tiles, row: int, steps: range, steps_per_chunk: int) -> NDArray[np.int32]:
    """Rows of tiles and chunks of steps for the groups of cl/energy/squares/ring.clh, (n_groups, 2).

    row : tiles in a row; steps : around the ring
    """
    n_rows = -(-len(tiles) // row)
    if len(tiles) > MOST_TILES:
        return _longest_first(np.zeros((n_rows, -(-len(steps) // steps_per_chunk))))
    rows = np.arange(n_rows)[:, np.newaxis]
    met = _over(_over(_nearness(tiles), row, 0), row, 1)[rows, (rows + np.array(steps)) % n_rows]
    met[np.array(steps) > (n_rows - (2 * rows < n_rows)) // 2] = 0  # beyond half the ring
    return _longest_first(_over(met, steps_per_chunk, 1))


def _nearness(tiles: Tiles) -> Floats:
    """Nearness of tiles, (n_tiles, n_tiles): 1 if their boxes touch, smaller with increasing distance."""
    gaps2 = np.zeros((len(tiles), len(tiles)))
    for origin, extent in zip(tiles.origins.T, tiles.extents.T, strict=True):
        gaps = np.abs(np.subtract.outer(origin, origin)) - np.add.outer(extent, extent)
        gaps2 += np.maximum(gaps, 0) ** 2
    nearness: Floats = 1 / (1 + np.sqrt(gaps2))
    return nearness


def _over(values: Floats, size: int, axis: int) -> Floats:
    """Sums over blocks of `size` values along an axis; the last block may be smaller."""
    sums: Floats = np.add.reduceat(values, np.arange(0, values.shape[axis], size), axis=axis)
    return sums


def _longest_first(costs: Floats) -> NDArray[np.int32]:
    """Rows and chunks of groups, (n_rows * n_chunks, 2), sorted by descending cost (n_rows, n_chunks)."""
    order = np.argsort(-costs.T.ravel(), kind="stable")
    return np.column_stack([order % len(costs), order // len(costs)]).astype(np.int32)
