"""Launches that serve many structures of different molecules: tables of arguments, and lists of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...opencl.binding import BoundLaunch, Launch
    from ...opencl.kernel import Argument
    from ...opencl.queue import Queue
    from ...opencl.recording import ArgumentRow, RecordedLaunch
    from .store import Store

Begins = Sequence["np.uint64 | NDArray[np.uint64]"]


def key_of(launches: Sequence[RecordedLaunch]) -> Hashable:
    """Give a key that is equal for molecules whose launches can be merged."""
    return tuple(launch.key for launch in launches)


class Tables:
    """Launches of structures whose molecules have one key, each with a table of arguments.

    A structure has a slot of the tables. The list of rows says which slots are launched, and in which order.
    """

    def __init__(
        self, queue: Queue, stores: Sequence[Store], launches: Sequence[RecordedLaunch], rows: Sequence[ArgumentRow],
        capacity: int,
    ) -> None:  # fmt: skip
        """launches, rows : of any molecule with the key; stores : where their arrays are; capacity : slots"""
        from ...opencl.binding import BoundLaunch

        self._queue = queue
        self._firsts = np.cumsum([0, *(len(row.values) for row in rows)])
        self._row_bytes = int(self._firsts[-1])
        self._values = np.zeros((capacity, self._row_bytes), np.uint8)
        self._shapes = np.zeros((len(rows), capacity, 2), np.int64)
        self._table = queue.empty(self._values.size, np.uint8)
        self._list = queue.empty(capacity, np.int32)
        self._changed = [0, 0]  # slots between which the device's table is old
        self._bound: list[BoundLaunch] = []
        self._numbers = {id(launch): k for k, launch in enumerate(launches)}
        for k, launch in enumerate(launches):
            first = np.int32(self._firsts[k])
            args: list[Argument] = [self._table, np.int32(self._row_bytes), first, self._list]
            args += [stores[arg.store].buffer for arg in launch.pieces]
            self._bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, tuple(args)))

    def put(self, slots: NDArray[np.intp], rows: Sequence[ArgumentRow], begins: Begins) -> None:
        """Give slots to structures of one molecule.

        begins : bytes of the stores at which regions begin, one or of each slot, as numbered by `BufferPiece.region`
        """
        for k, row in enumerate(rows):
            values = np.tile(row.values.view(np.uint64), (len(slots), 1))
            for places, begin in zip(row.places, begins, strict=False):
                values[:, places] += begin if isinstance(begin, np.uint64) else begin[:, None]
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
            self._queue.post(self._list, listed)
            for kept, (x, y) in zip(self._bound, self._shapes[:, listed].max(axis=1).tolist(), strict=True):
                kept.shape = x, y
        if end > first:
            part = self._values[first:end].ravel().copy()
            self._queue.post(self._table, part, first * self._row_bytes)
        self._changed = [0, 0]

    def bound(self, launches: Sequence[Launch]) -> list[BoundLaunch]:
        """Give the shared launches that take the place of a molecule's own."""
        return [self._bound[self._numbers[id(launch)]] for launch in launches]

    def launch(self, launches: Sequence[BoundLaunch], count: int, first: int = 0) -> None:
        """Launch for so many structures of the list, from the place `first` on."""
        if count:
            self._queue.launch_bound(launches, count, first=first)


class Alone:
    """Launches of one structure alone, by the plain kernels: each array is a part of a store's buffer.

    It serves in place of Tables; the structure stays where it is.
    """

    def __init__(
        self, queue: Queue, stores: Sequence[Store], launches: Sequence[RecordedLaunch], begins: Begins
    ) -> None:  # fmt: skip
        """begins : as of Tables.put, of one structure"""
        from ...opencl.binding import BoundLaunch

        self._queue = queue
        self._parts: dict[int, Argument] = {}  # by piece
        self._bound: list[BoundLaunch] = []
        self._numbers = {id(launch): k for k, launch in enumerate(launches)}
        for launch in launches:
            for piece in launch.pieces:
                if id(piece) not in self._parts:
                    first = int(np.ravel(begins[piece.region])[0]) + piece.first
                    self._parts[id(piece)] = queue.part(stores[piece.store].buffer, first, piece.size)
            args = tuple(self._parts.get(id(arg), arg) for arg in launch.args)
            self._bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, args))

    def send(self, slots: NDArray[np.integer]) -> None:
        """Do nothing: there is but one structure."""

    def put(self, slots: NDArray[np.intp], rows: Sequence[ArgumentRow], begins: Begins) -> None:
        """Do nothing: the structure is where it was."""

    def bound(self, launches: Sequence[Launch]) -> list[BoundLaunch]:
        """Give the launches of the structure that take the place of the recorded ones."""
        return [self._bound[self._numbers[id(launch)]] for launch in launches]

    def launch(self, launches: Sequence[BoundLaunch], count: int, first: int = 0) -> None:
        """Launch for the structure, if it is to be."""
        if count:
            self._queue.launch_bound(launches, count, first=first)
