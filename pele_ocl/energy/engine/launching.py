"""Launches that serve many structures of different molecules: tables of arguments, and lists of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .copies import Pending

if TYPE_CHECKING:
    from ...opencl.launch import BoundLaunch
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue
    from ...opencl.recording import ArgumentRow, RecordedLaunch
    from ...opencl.signature import Argument


class Room:
    """Bytes of a large buffer that are free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = [(0, size)]  # begin and end of each gap, in order

    def take(self, size: int) -> int | None:
        """Take the first gap of this size and give its first byte; None if there is none."""
        for k, (begin, end) in enumerate(self._free):
            if end - begin >= size:
                self._free[k : k + 1] = [(begin + size, end)] if end - begin > size else []
                return begin
        return None

    def give_back(self, first: int, size: int) -> None:
        """Free what was taken."""
        joined: list[tuple[int, int]] = []
        for begin, end in sorted([*self._free, (first, first + size)]):
            if joined and joined[-1][1] == begin:
                joined[-1] = joined[-1][0], end
            else:
                joined.append((begin, end))
        self._free = joined


def key_of(launches: Sequence[RecordedLaunch]) -> Hashable:
    """Give a key that is equal for molecules whose launches can be merged."""
    return tuple(launch.key for launch in launches)


class Tables:
    """Launches of structures whose molecules have one key, each with a table of arguments.

    A structure has a slot of the tables. The list of rows says which slots are launched, and in which order.
    """

    def __init__(
        self,
        queue: Queue,
        large: Buffer,
        launches: Sequence[RecordedLaunch],
        rows: Sequence[ArgumentRow],
        capacity: int,
    ) -> None:
        """launches, rows : of any molecule with the key; large : the buffer of all regions; capacity : slots"""
        from ...opencl.launch import BoundLaunch

        self._queue = queue
        self._firsts = np.cumsum([0, *(len(row.values) for row in rows)])
        self._row_bytes = int(self._firsts[-1])
        self._values = np.zeros((capacity, self._row_bytes), np.uint8)
        self._shapes = np.zeros((len(rows), capacity, 2), np.int64)
        self._table = queue.empty(self._values.size, np.uint8)
        self._list = queue.empty(capacity, np.int32)
        self._changed = [0, 0]  # slots between which the device's table is old
        self._pending = Pending(queue)
        self._bound: list[BoundLaunch] = []
        self._numbers = {id(launch): k for k, launch in enumerate(launches)}
        for k, launch in enumerate(launches):
            first = np.int32(self._firsts[k])
            args: list[Argument] = [self._table, np.int32(self._row_bytes), first, self._list]
            args += [large for arg in launch.args if not isinstance(arg, np.generic)]
            self._bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, tuple(args)))

    def put(self, slots: NDArray[np.intp], rows: Sequence[ArgumentRow], shared: int, own: NDArray[np.uint64]) -> None:
        """Give slots to structures of one molecule, whose regions begin at these bytes of the large buffer."""
        for k, row in enumerate(rows):
            values = np.tile(row.values.view(np.uint64), (len(slots), 1))
            values[:, row.shared] += np.uint64(shared)
            values[:, row.own] += own[:, None]
            self._values[slots, self._firsts[k] : self._firsts[k + 1]] = values.view(np.uint8)
            self._shapes[k, slots] = row.shape
        first, end = self._changed
        least, most = int(slots.min()), int(slots.max()) + 1
        self._changed = [min(first, least), max(end, most)] if end > first else [least, most]

    def send(self, slots: NDArray[np.integer]) -> None:
        """Have these slots be launched from now on, in this order, after all that was launched before."""
        first, end = self._changed
        listed = slots.astype(np.int32)
        if len(listed):
            self._pending.keep(self._queue.start_write(self._list, listed))
            for kept, (x, y) in zip(self._bound, self._shapes[:, listed].max(axis=1).tolist(), strict=True):
                kept.shape = x, y
        if end > first:
            part = self._values[first:end].ravel().copy()
            self._pending.keep(self._queue.start_write(self._table, part, first * self._row_bytes))
        self._changed = [0, 0]

    def bound(self, launches: Sequence[RecordedLaunch | BoundLaunch]) -> list[BoundLaunch]:
        """Give the shared launches that take the place of a molecule's own."""
        return [self._bound[self._numbers[id(launch)]] for launch in launches]

    def launch(self, launches: Sequence[BoundLaunch], count: int, first: int = 0) -> None:
        """Launch for so many structures of the list, from the place `first` on."""
        if count:
            self._queue.launch_bound(launches, count, first=first)
