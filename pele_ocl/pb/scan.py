"""Places of lists whose lengths are counted on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .launching import Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

GROUP = 1024


def add_up(launching: Launching, counts: Buffer, count: int) -> tuple[Buffer, int]:
    """Find where each list begins among all, (count + 1) integers, and the length of all.

    counts : (count,) lengths; if all are longer than 32 bits count, the places mean nothing
    """
    queue = launching.queue
    group = 1 if launching.is_cpu else min(GROUP, queue.device.largest_group)
    starts, total = queue.empty(count + 1, np.int32), queue.empty(1, np.int64)
    launching.prepare(
        "pb/scan.cl", "add_up", (group,), (group,), {"GROUP": group}, n=count, counts=counts, starts=starts,
        total=total,
    )()  # fmt: skip
    return starts, int(queue.download(total, 1, np.int64)[0])
