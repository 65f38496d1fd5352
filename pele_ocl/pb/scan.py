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
    queue = launching.queue
    n_tiles = -(-count // (GROUP * EACH))
    tiles, starts, total = queue.empty(n_tiles, np.int64), queue.empty(count + 1, np.int32), queue.empty(1, np.int64)

    def over(kernel: str, **values: Any) -> None:
        launching.prepare(
            "pb/scan.cl", kernel, (n_tiles * GROUP,), (GROUP,), {"GROUP": GROUP}, n=count, counts=counts, tiles=tiles,
            **values,
        )()  # fmt: skip

    over("sum_tiles")
    over("add_up", starts=starts, total=total)
    length = int(queue.download(total, 1, np.int64)[0])
    launching.let_go()
    return starts, length
