"""Pairs that bonds exclude, as bits of the few pairs of tiles that have any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Ints
from ..tiles import Tiles

BITS = 32  # of a word


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
        n_rows = -(-n_tiles // row_tiles)
        itself = np.flatnonzero(tiles.used)
        vector, single, kind = [itself, itself], [itself, itself], [np.zeros_like(itself), np.ones_like(itself)]
        for i, j in (excluded.T, excluded.T[::-1]):
            vector.append(tiles.slots[i])
            single.append(tiles.slots[j])
            kind.append(np.zeros_like(tiles.slots[i]))
        held, met, kinds = np.concatenate(vector), np.concatenate(single), np.concatenate(kind)
        tile, partner = (held // size, met // size) if own_vectors else (met // size, held // size)
        own_row = tile // row_tiles
        step = (partner // row_tiles - own_row) % n_rows if ring else partner // row_tiles
        kept = step <= (n_rows - (2 * own_row < n_rows)) // 2 if ring else np.ones_like(step, bool)
        key = (tile * n_rows + step) * row_tiles + partner % row_tiles
        held, met, kinds = held[kept], met[kept], kinds[kept]
        tile_pairs, which = np.unique(key[kept], return_inverse=True)
        own_tiles, placed = np.divmod(tile_pairs, n_rows * row_tiles)
        words = np.zeros((len(tile_pairs), 2, -(-size // BITS), size), np.uint32)
        bits = np.uint32(1) << (met % size % BITS).astype(np.uint32)
        np.bitwise_or.at(words, (which, kinds, met % size // BITS, held % size), bits)
        starts = np.searchsorted(own_tiles, np.arange(n_tiles + 1)).astype(np.int32)
        if ring:
            step, within = np.divmod(placed, row_tiles)
            placed = (own_tiles // row_tiles + step) % n_rows * row_tiles + within
        return cls(starts, placed.astype(np.int32), words)
