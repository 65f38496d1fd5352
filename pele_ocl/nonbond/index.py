"""Index structures of a pair list, built on the device: prefix sums, sorted keys, segments by atom, full rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.interface import Role

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

ITEMS = 64  # per group, where the group size does not matter


@dataclass(frozen=True, eq=False)
class Segments:
    """Pairs by atom: entries offsets[i] to offsets[i + 1] of `pairs` belong to atom i.

    offsets : buffer (n_atoms + 1) int32
    pairs : buffer of pair numbers, int32
    neighbours : buffer of the other atoms with their ONE_FOUR bit, uint32; only for full rows
    """

    offsets: Buffer
    pairs: Buffer
    neighbours: Buffer | None = None


def prefix_sum(queue: Queue, values: Buffer, n: int) -> None:
    """Replace n int32 values by their exclusive prefix sum, in place; the total must fit 31 bits."""
    scan, group = queue.group_kernel("nonbond/scan.cl", "scan_blocks", local_reals=2, most=256)
    block = 2 * group
    n_blocks = max(1, -(-n // block))
    totals = queue.empty(n_blocks, np.int32)
    arguments = dict(n=n, values=values, totals=totals)
    queue.launch(scan, (n_blocks * group,), (group,), arguments)
    if n_blocks > 1:
        prefix_sum(queue, totals, n_blocks)
        add = queue.kernel("nonbond/scan.cl", "add_totals", GROUP=group)
        queue.launch(add, (n_blocks * group,), (group,), arguments)


def segments_by_counting(
    queue: Queue, pairs: Buffer, n_pairs: int, n_atoms: int, role: Role, tile: int = 1
) -> Segments:
    """Sort pairs by atom, by counting, prefix sum, and sorting within segments. Role BOTH makes full rows.

    tile : number of atoms that share a segment
    """
    n_keys = 2 * n_pairs if role == Role.BOTH else n_pairs
    n_segments = -(-n_atoms // tile)
    offsets = queue.zeros(n_segments + 1, np.int32)
    listed = dict(n_pairs=n_pairs, role=role, tile=tile, pairs=pairs)
    if n_pairs:
        count = queue.kernel("nonbond/pair_index.cl", "count_pairs")
        queue.launch(count, (n_pairs,), (ITEMS,), dict(counts=offsets, **listed))
    prefix_sum(queue, offsets, n_segments + 1)
    keys = queue.empty(n_keys, np.uint64)
    if n_pairs:
        taken = queue.zeros(n_segments, np.int32)
        fill = queue.kernel("nonbond/pair_index.cl", "fill_segments")
        queue.launch(fill, (n_pairs,), (ITEMS,), dict(offsets=offsets, taken=taken, keys=keys, **listed))
        sort = queue.kernel("nonbond/pair_index.cl", "sort_segments")
        queue.launch(sort, (n_segments,), (ITEMS,), dict(n_segments=n_segments, offsets=offsets, keys=keys))
    return Segments(offsets, *split_keys(queue, keys, n_keys, role == Role.BOTH))


def split_keys(queue: Queue, keys: Buffer, n: int, rows: bool) -> tuple[Buffer, Buffer | None]:
    """Split keys into pair numbers, the lower halves, and for full rows neighbours, the upper halves."""
    low, high = queue.empty(n, np.int32), queue.empty(n, np.uint32)
    if n:
        split = queue.kernel("nonbond/pair_index.cl", "split_keys")
        queue.launch(split, (n,), (ITEMS,), dict(n=n, keys=keys, high=high, low=low))
    return low, high if rows else None
