"""Index structures over a pair list, built on the device: prefix sums, sorted keys, segments by atom, full rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.shared import Role

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.run import Run

ITEMS = 64  # of a group where the group does not matter


@dataclass(frozen=True, eq=False)
class Segments:
    """Pairs by atom: indices offsets[i] to offsets[i + 1] of `pairs` belong to atom i.

    offsets : buffer (n_atoms + 1) int32
    pairs : buffer of pair numbers, int32
    neighbours : buffer of the other atoms with their ONE_FOUR bit, uint32; only in rows
    """

    offsets: Buffer
    pairs: Buffer
    neighbours: Buffer | None = None


def prefix_sum(run: Run, values: Buffer, n: int) -> None:
    """Replace n int32 by their exclusive prefix sum, in place; their sum must fit 31 bits."""
    scan, group = run.group_kernel("nonbond/scan.cl", "scan_blocks", local_reals=2, most=256)
    block = 2 * group
    n_blocks = max(1, -(-n // block))
    totals = run.empty(n_blocks, np.int32)
    arguments = dict(n=n, values=values, totals=totals)
    run.launch(scan, (n_blocks * group,), (group,), arguments)
    if n_blocks > 1:
        prefix_sum(run, totals, n_blocks)
        add = run.kernel("nonbond/scan.cl", "add_totals", GROUP=group)
        run.launch(add, (n_blocks * group,), (group,), arguments)


def sort_keys(run: Run, keys: Buffer, n: int) -> None:
    """Sort n uint64 in place, ascending, by a bitonic network."""
    # A key takes two reals of local memory in float32.
    sort, group = run.group_kernel("nonbond/ladder/bitonic.cl", "sort_blocks", local_reals=4, most=256)
    block = 2 * group
    n_blocks = max(1, -(-n // block))
    shape, sorted_keys = (n_blocks * group,), dict(n=n, keys=keys)
    run.launch(sort, shape, (group,), sorted_keys)
    span = 2 * block
    while span < 2 * n:
        step = run.kernel("nonbond/ladder/bitonic.cl", "merge_step", GROUP=group)
        comparators = (-(-n // span) * span // 2,)
        run.launch(step, comparators, (ITEMS,), dict(span=span, distance=0, **sorted_keys))
        distance = span // 4
        while distance >= block:
            run.launch(step, comparators, (ITEMS,), dict(span=span, distance=distance, **sorted_keys))
            distance //= 2
        run.launch(run.kernel("nonbond/ladder/bitonic.cl", "merge_blocks", GROUP=group), shape, (group,), sorted_keys)
        span *= 2


def segments_by_counting(run: Run, pairs: Buffer, n_pairs: int, n_atoms: int, role: Role, tile: int = 1) -> Segments:
    """Count, prefix sum, fill, and put each segment in order. With role BOTH the segments are full rows.

    tile : atoms that share a segment
    """
    n_keys = 2 * n_pairs if role == Role.BOTH else n_pairs
    n_segments = -(-n_atoms // tile)
    offsets = run.zeros(n_segments + 1, np.int32)
    listed = dict(n_pairs=n_pairs, role=role, tile=tile, pairs=pairs)
    if n_pairs:
        count = run.kernel("nonbond/pair_index.cl", "count_pairs")
        run.launch(count, (n_pairs,), (ITEMS,), dict(counts=offsets, **listed))
    prefix_sum(run, offsets, n_segments + 1)
    keys = run.empty(n_keys, np.uint64)
    if n_pairs:
        taken = run.zeros(n_segments, np.int32)
        fill = run.kernel("nonbond/pair_index.cl", "fill_segments")
        run.launch(fill, (n_pairs,), (ITEMS,), dict(offsets=offsets, taken=taken, keys=keys, **listed))
        sort = run.kernel("nonbond/pair_index.cl", "sort_segments")
        run.launch(sort, (n_segments,), (ITEMS,), dict(n_segments=n_segments, offsets=offsets, keys=keys))
    return Segments(offsets, *_split(run, keys, n_keys, role == Role.BOTH))


def segments_by_sorting(run: Run, pairs: Buffer, n_pairs: int, n_atoms: int, role: Role) -> Segments:
    """Make segments from sorted keys: atom above pair number."""
    keys, offsets = run.empty(n_pairs, np.uint64), run.zeros(n_atoms + 1, np.int32)
    if n_pairs:
        make, find = (run.kernel("nonbond/pair_index.cl", name) for name in ("make_keys", "find_offsets"))
        run.launch(make, (n_pairs,), (ITEMS,), dict(n_pairs=n_pairs, role=role, pairs=pairs, keys=keys))
        sort_keys(run, keys, n_pairs)
        run.launch(
            find, (n_pairs + 1,), (ITEMS,), dict(n_pairs=n_pairs, n_atoms=n_atoms, keys=keys, offsets=offsets)
        )  # fmt: skip
    return Segments(offsets, *_split(run, keys, n_pairs, False))


def _split(run: Run, keys: Buffer, n: int, rows: bool) -> tuple[Buffer, Buffer | None]:
    """Lower and upper halves of the keys: pair numbers, and in rows the neighbours."""
    low, high = run.empty(n, np.int32), run.empty(n, np.uint32)
    if n:
        split = run.kernel("nonbond/pair_index.cl", "split_keys")
        run.launch(split, (n,), (ITEMS,), dict(n=n, keys=keys, high=high, low=low))
    return low, high if rows else None
