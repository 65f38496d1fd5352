"""Store of rows: one large buffer of a device with what molecules share and what rows have; copies of its pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...common.threads import by_rows
from ...opencl.transfers import borrowed

if TYPE_CHECKING:
    from ...opencl.binding import BoundLaunch
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue
    from ...opencl.recording import Recorder

WORD = 8  # bytes
MOST_PIECES = 65_535  # of a launch, which CUDA's devices take in the third dimension
MOST_ITEMS = 4096  # work-items of a piece
ITEMS = 64  # of a group
LARGE = 1 << 22  # bytes that go by way of memory of the host that the device reads and fills by itself

Places = NDArray[np.uint64]  # bytes, whole words
Gaps = list[tuple[int, int]]  # begin and end of the free parts of a buffer, in order


class Store:
    """Regions of one large buffer: of molecules, as long as there is room, and of rows.

    shared : first bytes of what the rows of a molecule share, by its recorder
    rewrites : how often buffers of terms were written
    """

    def __init__(self, queue: Queue, size: int) -> None:
        """queue : writes what rows of a molecule share"""
        self.buffer, self.size, self.shared = queue.empty(size, np.uint8), size, dict["Recorder", int]()
        self.rewrites = 0
        self._queue = queue
        self._gaps: Gaps = [(0, size)]
        self._users = Counter["Recorder"]()
        self._rows: dict[Recorder, list[int]] = {}

    def take(self, recorder: Recorder) -> int | None:
        """Take a region for a row, and one for its molecule if that has none; None if there is no room."""
        own = self._taken(recorder)
        if own is None and not any(self._users.values()):  # what is free is in parts that are too small
            self._drop(self.shared)
            own = self._taken(recorder)
        if own is not None:
            self._users[recorder] += 1
            self._rows.setdefault(recorder, []).append(own)
        return own

    def give_back(self, recorder: Recorder, first: int) -> None:
        """Free the region of a row; its molecule keeps its own until there is no room."""
        give_gap_back(self._gaps, first, recorder.own.size)
        self._users[recorder] -= 1
        self._rows[recorder].remove(first)

    def rewrite(self, recorder: Recorder, is_shared: bool, first: int, data: NDArray[np.uint8]) -> None:
        """Write bytes to what the rows of a molecule share, or to what each of them has."""
        begins = [self.shared[recorder]] if is_shared and recorder in self.shared else []
        for begin in begins if is_shared else self._rows.get(recorder, ()):
            self._queue.write(self.buffer, data, begin + first)
        self.rewrites += 1

    def share(self, recorder: Recorder) -> bool:
        """Place what the rows of a molecule share; give False if there is no room."""
        first = self._first(recorder.shared.size, recorder)
        if first is None:
            return False
        self.shared[recorder] = first
        recorder.homes.add(self)
        if len(recorder.shared.image):
            self._queue.write(self.buffer, recorder.shared.image, first)
        return True

    def _taken(self, recorder: Recorder) -> int | None:
        if recorder not in self.shared:
            # Molecules of calls before go first: later their bytes would be gaps, too small for the last row.
            self._drop([other for other in self.shared if not self._users[other]])
            if not self.share(recorder):
                return None
        return self._first(recorder.own.size, recorder)

    def _first(self, size: int, recorder: Recorder) -> int | None:
        """Take so many bytes, if need be from molecules without rows, but for one."""
        first = take_gap(self._gaps, size) if size else 0
        if first is None:
            self._drop([other for other in self.shared if other is not recorder and not self._users[other]])
            first = take_gap(self._gaps, size)
        return first

    def _drop(self, recorders: Iterable[Recorder]) -> None:
        for recorder in list(recorders):
            first = self.shared.pop(recorder)
            if recorder.shared.size:
                give_gap_back(self._gaps, first, recorder.shared.size)


def take_gap(gaps: Gaps, size: int) -> int | None:
    """Take bytes of the first gap that is large enough. Returns the first one; None if no gap is."""
    for k, (begin, end) in enumerate(gaps):
        if end - begin >= size:
            gaps[k : k + 1] = [(begin + size, end)] if end - begin > size else []
            return begin
    return None


def give_gap_back(gaps: Gaps, first: int, size: int) -> None:
    """Free bytes that were taken, and join them with adjacent gaps."""
    joined: Gaps = []
    for begin, end in sorted([*gaps, (first, first + size)]):
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    gaps[:] = joined


class Copies:
    """Copies of many pieces in one queue, by one launch; a single piece has no need of one.

    Pieces begin at whole words of 8 bytes, and have room for whole words.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._buffers: dict[str, Buffer] = {}
        self._bound: dict[tuple[object, ...], BoundLaunch] = {}  # by kernel and buffers

    def move(self, source: Buffer, target: Buffer, begin: Places, end: Places, sizes: NDArray[np.int64]) -> None:
        """Start the copy of pieces from bytes `begin` of a buffer to bytes `end` of another one.

        Within one buffer, pieces may go where other pieces were.
        """
        if len(sizes) == 1:
            if source is not target or begin[0] != end[0]:
                self._queue.copy_bytes(source, int(begin[0]), target, int(end[0]), _whole(int(sizes[0])))
            return
        if source is target and np.isin(begin, end).any():
            between = self._between("moved", int(sizes.sum()))
            places = np.append(0, np.cumsum(sizes[:-1])).astype(np.uint64)
            self.move(source, between, begin, places, sizes)
            source, begin = between, places
        self._launch("copy_pieces", begin, end, sizes, {"source": source, "target": target})

    def clear(self, target: Buffer, begin: Places, sizes: NDArray[np.int64]) -> None:
        """Start to fill pieces with zeros."""
        if len(sizes) == 1:
            if sizes[0]:
                self._queue.clear(target, int(begin[0]), int(sizes[0]))
            return
        self._launch("clear_pieces", begin, begin, sizes, {"target": target})

    def scatter(self, target: Buffer, pieces: Sequence[tuple[Places, NDArray[Any]]]) -> None:
        """Start to write values: each (m, size) of some type, with the bytes (m,) at which its rows begin."""
        there = [(begin, np.ascontiguousarray(values)) for begin, values in pieces if len(begin) and values.size]
        if not there:
            return
        widths = [_whole(values[0].nbytes) for _, values in there]
        if len(there) == 1 and widths[0] == there[0][1][0].nbytes:
            (begin, values), width = there[0], widths[0]
            if len(begin) == 1:
                self._queue.post(target, values.view(np.uint8), int(begin[0]))
                return
            between = self._between("values", values.nbytes)
            self._queue.post(between, values)
            starts = np.arange(len(begin), dtype=np.uint64) * np.uint64(width)
            self.move(between, target, starts, begin, np.full(len(begin), width))
            return
        firsts = np.cumsum([0, *(len(begin) * width for (begin, _), width in zip(there, widths, strict=True))])
        staged = np.zeros(int(firsts[-1]), np.uint8)
        for (begin, values), width, first in zip(there, widths, firsts.tolist(), strict=False):
            rows = staged[first : first + len(begin) * width].reshape(len(begin), width)
            rows[:, : values[0].nbytes] = values.view(np.uint8).reshape(len(begin), -1)
        between = self._between("values", staged.nbytes)
        self._queue.post(between, staged)
        sizes = np.concatenate([np.full(len(begin), width) for (begin, _), width in zip(there, widths, strict=True)])
        starts = np.append(0, np.cumsum(sizes[:-1])).astype(np.uint64)
        self.move(between, target, starts, np.concatenate([begin for begin, _ in there]), sizes)

    @contextmanager
    def pinned(self, shape: tuple[int, int], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """Lend an array to be filled and then scattered, once that is done; a large one is memory that devices read."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if size < LARGE:
            yield np.empty(shape, kind)
            return
        with borrowed(self._queue, size, 1) as (memory,):
            yield memory[:size].view(kind).reshape(shape)
            self._queue.finish()

    def gather(
        self, source: Buffer, begin: Places, size: int, dtype: DTypeLike, to: DTypeLike | None = None
    ) -> NDArray[Any]:
        """Read pieces of so many bytes, (m, size of the type), once all before is done. to : type to make of them"""
        width, kind = _whole(size), np.dtype(dtype)
        to = np.dtype(to or kind)
        shape = len(begin), width
        if not math.prod(shape):
            return np.empty((len(begin), size // kind.itemsize), to)
        if len(begin) == 1:
            single = np.empty((1, size // kind.itemsize), kind)
            self._queue.read(single.view(np.uint8), source, int(begin[0]))
            return single.astype(to, copy=False)
        between = self._between("read", math.prod(shape))
        places = np.arange(len(begin), dtype=np.uint64) * np.uint64(width)
        self.move(source, between, begin, places, np.full(len(begin), width))
        if math.prod(shape) < LARGE:
            array = np.empty(shape, np.uint8)
            self._queue.read(array, between)
            return array[:, :size].view(kind).astype(to, copy=False)
        with borrowed(self._queue, math.prod(shape), 1) as (memory,):
            staged = memory[: math.prod(shape)].reshape(shape)
            self._queue.read(staged, between)
            values = staged[:, :size].view(kind)
            found = self._queue.device.results.array((len(begin), size // kind.itemsize), to)

            def copy(rows: slice) -> None:
                found[rows] = values[rows]

            by_rows(len(found), found.shape[1], copy)
        return found

    def _between(self, name: str, size: int) -> Buffer:
        """A buffer of so many bytes at least, which is kept for the next time."""
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers.pop(name, None)
            self._bound.clear()  # which would keep the smaller one
            self._buffers[name] = self._queue.empty(size, np.uint8)
        return self._buffers[name]

    def _launch(
        self, name: str, begin: Places, end: Places, sizes: NDArray[np.int64], buffers: Mapping[str, Buffer]
    ) -> None:
        if not len(sizes):
            return
        queue, places = self._queue, np.empty((len(sizes), 3), np.uint64)
        places[:, 0], places[:, 1], places[:, 2] = begin // np.uint64(WORD), end // np.uint64(WORD), -(-sizes // WORD)
        there = self._between("places", places.nbytes)
        queue.post(there, places)
        key = name, *map(id, buffers.values())
        if key not in self._bound:
            items = min(ITEMS, queue.device.largest_group)
            self._bound[key] = queue.bind(
                "engine/copy.cl", name, (items, 1), (items, 1), {"places": there, **buffers}
            )  # fmt: skip
        bound = self._bound[key]
        items = bound.group[0]
        bound.shape = -(-min(MOST_ITEMS, max(1, int(places[:, 2].max()))) // items) * items, 1
        for first in range(0, len(sizes), MOST_PIECES):
            queue.launch_bound([bound], min(MOST_PIECES, len(sizes) - first), first=first)


def _whole(size: int) -> int:
    """Bytes of the whole words that so many bytes take."""
    return -(-size // WORD) * WORD
