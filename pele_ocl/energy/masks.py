"""Pairs that bonds exclude, as bits of the few pairs of tiles that have any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Ints
from ..tiles import Tiles

BITS = 32  # of a word

# Pairs of tiles up to which those that occur are found by a table of all; it is many times as fast as sorting.
MOST_COUNTED = 1 << 24


@dataclass(frozen=True)
class TileOrder:
    """Order in which kernels meet tiles.

    ring : whether a tile meets half a ring of tiles, itself first; otherwise all tiles in rising order
    own_vectors : whether the atoms of its own tile lie in vectors; otherwise they come one by one
    row_tiles : tiles of a row of tiles, which takes its steps in the ring together
    """

    ring: bool
    own_vectors: bool
    row_tiles: int = 1


@dataclass(frozen=True, eq=False)
class Masks:
    """Masked partners of each tile, the tile itself among them, and the bits of each.

    starts : (n_tiles + 1,) first partner of each tile
    partners : (n_masked,) tiles, in the order in which a kernel meets them
    words : (n_masked, 2, n_words, tile) of each atom that a kernel holds in a vector, a bit for every atom it meets;
        the first kind marks excluded pairs, an atom and itself among them; the second kind marks an atom and itself
    """

    starts: Ints
    partners: Ints
    words: NDArray[np.uint32]

    @classmethod
    def of(cls, tiles: Tiles, excluded: Ints, order: TileOrder) -> Masks:
        """Make the masks of a molecule for kernels that meet its tiles in this order.

        excluded : (k, 2) pairs of atoms
        """
        ring, own_vectors, row_tiles = order.ring, order.own_vectors, order.row_tiles
        n_tiles, size = len(tiles), tiles.size
        n_rows, n_words = -(-n_tiles // row_tiles), -(-size // BITS)
        itself = np.flatnonzero(tiles.used)
        i, j = tiles.slots[excluded].T
        held, met = np.concatenate([itself, itself, i, j]), np.concatenate([itself, itself, j, i])
        kinds = np.zeros(len(held), np.int64)
        kinds[len(itself) : 2 * len(itself)] = 1
        held_tile, met_tile = held // size, met // size
        tile, partner = (held_tile, met_tile) if own_vectors else (met_tile, held_tile)
        own_row, step = tile // row_tiles, partner // row_tiles
        within = partner - step * row_tiles
        if ring:
            step = step - own_row
            step += n_rows * (step < 0)
        key = (tile * n_rows + step) * row_tiles + within
        met = met - met_tile * size
        word = met // BITS
        places = (kinds * n_words + word) * size + held - held_tile * size
        bits = np.uint32(1) << (met - word * BITS).astype(np.uint32)
        if ring:
            kept = step <= (n_rows - (2 * own_row < n_rows)) // 2
            key, places, bits = key[kept], places[kept], bits[kept]
        tile_pairs, which = _numbered(key, n_tiles * n_rows * row_tiles)
        words = np.zeros((len(tile_pairs), 2, n_words, size), np.uint32)
        np.bitwise_or.at(words.reshape(-1), which * (2 * n_words * size) + places, bits)
        own_tiles, placed = np.divmod(tile_pairs, n_rows * row_tiles)
        starts = np.searchsorted(own_tiles, np.arange(n_tiles + 1)).astype(np.int32)
        if ring:
            step, within = np.divmod(placed, row_tiles)
            placed = (own_tiles // row_tiles + step) % n_rows * row_tiles + within
        return cls(starts, placed.astype(np.int32), words)


def _numbered(values: Ints, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the different ones of whole numbers from 0 to `end`, rising, and the place of each number among them."""
    if end > MOST_COUNTED:
        return np.unique(values, return_inverse=True)
    number = np.zeros(end, np.int64)
    number[values] = 1
    different = np.flatnonzero(number)
    number[different] = np.arange(len(different))
    return different, number[values]
