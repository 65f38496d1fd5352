"""Prefix sums on the device, for lists whose lengths are counted there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from .launching import Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

GROUP, EACH = 64, 16  # work-group size and counts per work-item, see cl/pb/scan.cl
MOST_LISTED = 2**31 - 1  # elements of all lists, because kernels use 32-bit indices


def add_up(launching: Launching, counts: Buffer, count: int, what: str) -> tuple[Buffer, int]:
    """Compute the start of each list in a concatenation, (count + 1) integers, and the total length.

    counts : (count,) lengths, count >= 1; what : the elements of the lists

    Raises InputError, as require_listable does, if there are too many elements.
    """
    starts, bounds = add_up_rows(launching, counts, count, 1)
    require_listable(bounds[-1], what)
    return starts, bounds[-1]


def require_listable(count: int, what: str) -> None:
    """Raise InputError if lists have too many elements in total. what : the elements"""
    if count > MOST_LISTED:
        raise InputError(f"{what} are too many; choose a larger spacing or a smaller density of the surface")


def add_up_rows(launching: Launching, counts: Buffer, count: int, rows: int) -> tuple[Buffer, list[int]]:
    """Compute the starts of lists as `add_up` does, and the bounds of each row.

    rows : number of rows, which have equal numbers of lists; if the total exceeds 32 bits, the starts are undefined

    Returns the starts, and (rows + 1) bounds of the rows.
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
