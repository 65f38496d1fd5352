"""Places of lists whose lengths are counted on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .launching import Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

GROUP, EACH = 64, 16  # work-items of a group; counts of each: cl/pb/scan.cl


def add_up(launching: Launching, counts: Buffer, count: int) -> tuple[Buffer, int]:
    """Find where each list begins among all, (count + 1) integers, and the length of all.

    counts : (count,) lengths, count >= 1; if all are longer than 32 bits count, the places mean nothing
    """
    starts, bounds = add_up_rows(launching, counts, count, 1)
    return starts, bounds[-1]


def add_up_rows(launching: Launching, counts: Buffer, count: int, rows: int) -> tuple[Buffer, list[int]]:
    """Find where lists begin, as `add_up` does, where each row's lists begin, and where the last row's lists end.

    rows : number of rows, which have equal numbers of lists
    """
    queue = launching.queue
    n_tiles = -(-count // (GROUP * EACH))
    tiles, starts = queue.empty(n_tiles, np.int64), queue.empty(count + 1, np.int32)
    bounds = queue.empty(rows + 1, np.int64)

    def over(kernel: str, **values: Any) -> None:
        launching.prepare(
            "pb/scan.cl", kernel, (n_tiles * GROUP,), (GROUP,), {"GROUP": GROUP}, n=count, counts=counts, tiles=tiles,
            **values,
        )()  # fmt: skip

    over("sum_tiles")
    over("add_up", each=count // rows, starts=starts, bounds=bounds)
    found: list[int] = queue.download(bounds, rows + 1, np.int64).tolist()
    launching.let_go()
    return starts, found
