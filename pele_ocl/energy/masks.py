"""Pairs that bonds exclude or scale, as bits of the few pairs of tiles that have any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Ints
from ..tiles import Tiles

BITS = 32  # of a word


@dataclass(frozen=True, eq=False)
class Masks:
    """For each tile its masked partners, the tile itself among them, and the bits of each.

    starts : (n_tiles + 1,) first partner of each tile
    partners : (n_masked,) tiles, in the order in which a kernel meets them
    words : (n_masked, 2, n_words, tile) of each atom that a kernel holds in a vector, a bit for every atom it meets one
        by one: the first kind marks excluded pairs, the second 1-4 pairs, both together an atom and itself
    """

    starts: Ints
    partners: Ints
    words: NDArray[np.uint32]

    @classmethod
    def of(cls, tiles: Tiles, excluded: Ints, scaled: Ints, variant: str) -> Masks:
        """For the kernels of a variant.

        excluded, scaled : (k, 2) pairs of atoms

        In `rows` a tile's atoms are vectors and meet all tiles in rising order; in `blocks` they come one by one and
        meet those of half a ring, the tile itself first; in `squares` they are vectors and meet half a ring.
        """
        ring, own_vectors = variant != "rows", variant != "blocks"
        n_tiles, size = len(tiles), tiles.size
        places = np.empty(int(tiles.counts.sum()), np.int64)
        places[tiles.order[tiles.used]] = np.flatnonzero(tiles.used)
        itself = np.flatnonzero(tiles.used)
        vector, single, kind = [itself, itself], [itself, itself], [np.zeros_like(itself), np.ones_like(itself)]
        for number, pairs in enumerate((excluded, scaled)):
            for i, j in (pairs.T, pairs.T[::-1]):
                vector.append(places[i])
                single.append(places[j])
                kind.append(np.full(len(i), number))
        held, met, kinds = np.concatenate(vector), np.concatenate(single), np.concatenate(kind)
        row, partner = (held // size, met // size) if own_vectors else (met // size, held // size)
        place = (partner - row) % n_tiles if ring else partner
        if ring:
            kept = place <= (n_tiles - (2 * row < n_tiles)) // 2
            held, met, kinds, row, place = held[kept], met[kept], kinds[kept], row[kept], place[kept]
        blocks, which = np.unique(row * n_tiles + place, return_inverse=True)
        rows, placed = np.divmod(blocks, n_tiles)
        words = np.zeros((len(blocks), 2, -(-size // BITS), size), np.uint32)
        bits = np.uint32(1) << (met % size % BITS).astype(np.uint32)
        np.bitwise_or.at(words, (which, kinds, met % size // BITS, held % size), bits)
        starts = np.searchsorted(rows, np.arange(n_tiles + 1)).astype(np.int32)
        partners = ((rows + placed) % n_tiles if ring else placed).astype(np.int32)
        return cls(starts, partners, words)
