"""Atoms sorted in space and cut into tiles, each with an origin and a box around it.

Neighbours in the list are neighbours in space, so a kernel can tell from two boxes whether all pairs of two tiles are
far apart. Positions relative to a tile's origin keep their digits in float32 wherever the structure lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .atoms import Floats, Ints

HILBERT_BITS = 16
# Origins are multiples of this (A), so that their differences are exact in float32 up to 500,000 A.
ORIGIN_STEP = 1 / 32


# A tile ends where the curve jumps farther than this (A), so that offsets stay short in sparse structures, too.
LONGEST_STEP = 16.0


LEAST_PARTS = 16  # enough to even out what else a machine does


def cpu_parts(units: int) -> int:
    """Into how many parts tiles are shared out on a CPU, at most: equally many for each of its units."""
    return units * -(-LEAST_PARTS // units)


@dataclass(frozen=True, eq=False)
class Tiles:
    """n atoms in n_tiles tiles of up to `size`; unused places of a tile hold copies of its last atom.

    order : (n_places,) which atom stands at each place, n_places = n_tiles * size
    counts : (n_tiles,) atoms in each tile
    offsets : (n_places, 3) position from the origin of the place's tile, A
    origins : (n_tiles, 3) A, from the middle of the structure
    extents : (n_tiles, 3) half edges of the box around the origin that holds the tile, A
    """

    size: int
    order: NDArray[np.intp]
    counts: Ints
    offsets: Floats
    origins: Floats
    extents: Floats

    @classmethod
    def of(cls, positions: Floats, size: int) -> Tiles:
        """Sort positions (n, 3) A along a Hilbert curve and cut them into tiles of at most `size` atoms."""
        order = np.argsort(hilbert_keys(positions), kind="stable")
        starts, counts = _cut(positions[order], size)
        within = np.minimum(np.arange(size), counts[:, None] - 1)
        order = order[(starts[:, None] + within).ravel()]
        middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
        tiles = (positions - middle)[order].reshape(-1, size, 3)
        centres = (tiles.min(axis=1) + tiles.max(axis=1)) / 2
        origins = np.round(centres / ORIGIN_STEP) * ORIGIN_STEP
        offsets = tiles - origins[:, None]
        return cls(size, order, counts.astype(np.int32), offsets.reshape(-1, 3), origins, np.abs(offsets).max(axis=1))

    def __len__(self) -> int:
        return len(self.origins)

    @property
    def n_places(self) -> int:
        """Places in all tiles, (n_tiles * size)."""
        return len(self.order)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether a place holds an atom, (n_places,); no copy of another."""
        used: NDArray[np.bool_] = (np.arange(self.size) < self.counts[:, None]).ravel()
        return used

    def largest(self, values: Floats) -> Floats:
        """The largest of `values` (n,) in each tile, (n_tiles,)."""
        largest: Floats = values[self.order].reshape(-1, self.size).max(axis=1)
        return largest

    @property
    def places(self) -> NDArray[np.intp]:
        """The place of each atom, (n,)."""
        used = np.flatnonzero(self.used)
        places = np.empty(len(used), np.intp)
        places[self.order[used]] = used
        return places

    def scatter(self, values: NDArray[np.floating]) -> Floats:
        """Values by place, (n_places,), back in the order of the atoms, (n,) float64."""
        result: Floats = values[self.places].astype(np.float64)
        return result


def _cut(positions: Floats, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Start and count of each tile of atoms in order: runs without a long step, cut into pieces of `size`."""
    steps = np.abs(np.diff(positions, axis=0)).max(axis=1, initial=0.0)
    runs = np.concatenate([[0], np.flatnonzero(steps > LONGEST_STEP) + 1, [len(positions)]])
    pieces = -(-np.diff(runs) // size)
    first_piece = np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = np.repeat(runs[:-1], pieces) + size * (np.arange(pieces.sum()) - first_piece)
    return starts, np.minimum(size, np.repeat(runs[1:], pieces) - starts)


def hilbert_keys(positions: Floats, bits: int = HILBERT_BITS) -> NDArray[np.uint64]:
    """Place of each position along a Hilbert curve through the bounding cube, (n,).

    Skilling, AIP Conf. Proc. 707, 381 (2004).

    positions : (n, 3) A
    bits : the cube is divided 2^bits times along an edge
    """
    lowest = positions.min(axis=0)
    edge = max(float((positions.max(axis=0) - lowest).max()), 1e-9)
    scaled = (positions - lowest) * ((2**bits - 1) / edge)
    x, y, z = _to_transpose([axis.astype(np.uint64) for axis in scaled.T], bits)
    key = np.zeros(len(positions), np.uint64)
    for bit in range(bits):
        b = np.uint64(bit)
        for place, axis in enumerate((z, y, x)):
            key |= ((axis >> b) & np.uint64(1)) << np.uint64(3 * bit + place)
    return key


def _to_transpose(axes: list[NDArray[np.uint64]], bits: int) -> list[NDArray[np.uint64]]:
    """Skilling's inverse undo of the excess work, then the Gray code, on all points at once."""
    for bit in range(bits - 1, 0, -1):
        high = np.uint64(1 << bit)
        low = high - np.uint64(1)
        for axis in range(3):
            set_ = (axes[axis] & high) != 0
            swapped = np.where(set_, np.uint64(0), (axes[0] ^ axes[axis]) & low)
            axes[0] = np.where(set_, axes[0] ^ low, axes[0] ^ swapped)
            if axis:
                axes[axis] = axes[axis] ^ swapped
    axes[1] = axes[1] ^ axes[0]
    axes[2] = axes[2] ^ axes[1]
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        high = np.uint64(1 << bit)
        flips = np.where((axes[2] & high) != 0, flips ^ (high - np.uint64(1)), flips)
    return [axis ^ flips for axis in axes]
