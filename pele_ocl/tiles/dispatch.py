"""Order in which work-groups of a launch take shares of a pass: the longest first.

Devices start groups in the order of their numbers. A long one that starts late keeps the next launch waiting, so the
longest come first (Graham, SIAM J. Appl. Math. 17, 416 (1969)). They meet near tiles, whose pairs cost more. The
results do not depend on it, nor do their bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .tiles import Tiles

# Of more tiles the groups of a launch are so many that the last ones do not matter.
MOST_TILES = 1_000


def born_dispatch(tiles: Tiles, row: int, tiles_per_chunk: int) -> NDArray[np.int32]:
    """Row of tiles and chunk of tiles of each group of cl/solvent/tiled.cl, (n_groups, 2). row : tiles in a row"""
    n_tiles = len(tiles)
    if n_tiles > MOST_TILES:
        return _longest_first(np.zeros((-(-n_tiles // row), -(-n_tiles // tiles_per_chunk))))
    return _longest_first(_over(_over(_nearness(tiles), row, 0), tiles_per_chunk, 1))


def ring_dispatch(tiles: Tiles, row: int, steps: range, steps_per_chunk: int) -> NDArray[np.int32]:
    """Row of tiles and chunk of steps of each group of cl/energy/squares/ring.clh, (n_groups, 2).

    row : tiles in a row; steps : around the ring
    """
    n_rows = -(-len(tiles) // row)
    if len(tiles) > MOST_TILES:
        return _longest_first(np.zeros((n_rows, -(-len(steps) // steps_per_chunk))))
    rows = np.arange(n_rows)[:, np.newaxis]
    met = _over(_over(_nearness(tiles), row, 0), row, 1)[rows, (rows + np.array(steps)) % n_rows]
    met[np.array(steps) > (n_rows - (2 * rows < n_rows)) // 2] = 0  # the other half of the ring
    return _longest_first(_over(met, steps_per_chunk, 1))


def _nearness(tiles: Tiles) -> Floats:
    """Measure how near tiles are to each other, (n_tiles, n_tiles): 1 if boxes touch, less the farther they are."""
    gaps2 = np.zeros((len(tiles), len(tiles)))
    for origin, extent in zip(tiles.origins.T, tiles.extents.T, strict=True):
        gaps = np.abs(np.subtract.outer(origin, origin)) - np.add.outer(extent, extent)
        gaps2 += np.maximum(gaps, 0) ** 2
    nearness: Floats = 1 / (1 + np.sqrt(gaps2))
    return nearness


def _over(values: Floats, size: int, axis: int) -> Floats:
    """Sums over each `size` values along an axis; the last may have fewer."""
    sums: Floats = np.add.reduceat(values, np.arange(0, values.shape[axis], size), axis=axis)
    return sums


def _longest_first(costs: Floats) -> NDArray[np.int32]:
    """Row and chunk of each group, (n_rows * n_chunks, 2), by what they cost (n_rows, n_chunks)."""
    order = np.argsort(-costs.T.ravel(), kind="stable")
    return np.column_stack([order % len(costs), order // len(costs)]).astype(np.int32)
