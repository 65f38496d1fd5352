"""Queues of a device: memory transfers, kernel launches, and their timing.

Large arrays are read into pinned host memory in parts; threads copy each part while the next ones are transferred.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..common.threads import MOST_COPIERS, by_rows, copiers
from ..common.variant import Progress
from .binding import LONG_LAUNCH_PAIRS, Binder, BoundLaunch, set_arguments, whole_groups
from .building import get_kernel
from .device import refusal
from .interface import WORD
from .kernel import Arguments, Kernel
from .memory import LARGE, Buffer, BufferPool, CommandQueue, ask_for_large_pages, map_whole, part_of, shares_memory

Event = cl.Event

MOST_CACHED = 2  # maximum number of cached buffers per device
CACHED_SHARE = 16  # a cached buffer may use 1/16 of the device's memory
MOST_TABLES, LARGEST_TABLE = 256, 1 << 16  # maximum number of cached tables, and bytes of each

LARGE_SHARE = 16  # required free device memory, in multiples of the result's size
FILLED = 1 << 28  # bytes filled directly; the rest is copied, because NVIDIA's OpenCL hangs on fills above 2 GiB

IN_TURN, LEAST_IN_TURN = 8, 2  # number of host arrays; fewer for large slices, to limit host memory
BETWEEN_LOOKS = 5e-5  # interval for polling an event, s
PAGE = 4096  # minimum page size of host memory, bytes

MOST_PIECES = 65_535  # per launch; CUDA's limit for the third dimension
PIECE_ITEMS, PIECE_GROUP = 4096, 64  # maximum work-items per piece, and work-items per group
PINNED = 1 << 22  # minimum size of transfers through pinned memory, bytes

# Launches with progress reports, and launches that would block the display, are split into slabs of about this time.
SLAB_SECONDS = 0.5
FIRST_SLAB_PAIRS = 2e7


Places = NDArray[np.uint64]  # byte offsets of pieces, multiples of WORD


def seconds_of(event: Event) -> float:
    """Return the run time of a command, s. Its queue must have profiling enabled."""
    return float(event.profile.end - event.profile.start) * 1e-9


def elapsed_seconds(events: Sequence[Event], firsts: set[int], part: slice) -> float:
    """Return the time from the start of a part's first command to the end of its last, s.

    firsts : indices of first launches of kernels; the time before them is not counted, because some runtimes build a
        kernel only when it is launched
    """
    first, last, _ = part.indices(len(events))
    bounds = sorted({first, *(k for k in firsts if first < k < last), last})
    stretches = [events[start:stop] for start, stop in pairwise(bounds)]
    return float(sum(some[-1].profile.end - some[0].profile.start for some in stretches)) * 1e-9


class Turns:
    """Lets several threads with a queue each take turns: one thread runs until it waits for the device.

    The running thread checks whether the commands of waiting threads are complete, and lets them run between its own
    launches. If waiting threads checked this, each would need Python's global lock, which the running thread releases
    only every few milliseconds, and the device would be idle.

    is_over : set to True to end the other threads at their next turn, by a CancelledError
    """

    def __init__(self) -> None:
        self.is_over = False
        self._lock = Lock()  # acquired to change or read the next two attributes
        self._is_taken = False
        # Threads in the order of their turns. The lock of a thread is released when it may run. The function returns
        # whether its commands are complete; None if it does not wait for the device.
        self._others: deque[tuple[Lock, Callable[[], bool] | None]] = deque()

    def __enter__(self) -> None:
        with self._lock:
            turn = self._append(None) if self._is_taken else None
            self._is_taken = True
        if turn is not None:
            turn.acquire()
        if self.is_over:
            self._leave()
            raise CancelledError

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        while (found := self._next()) is None:
            with self._lock:
                if not self._others:
                    self._is_taken = False
                    return
            time.sleep(BETWEEN_LOOKS)
        found.release()

    def wait(self, is_complete: Callable[[], bool]) -> None:
        """Let other threads run until `is_complete` returns True. Raises its errors, and CancelledError at the end."""
        turn = self._queued(is_complete)
        while (found := self._next()) is None:
            time.sleep(BETWEEN_LOOKS)
        self._switch(turn, found)
        is_complete()  # raises an error of this thread that another one has ignored

    def offer(self, before: Callable[[], object]) -> None:
        """Let another thread run if it waits for the device and its commands are complete. before : called before that

        Raises CancelledError if all turns are over when this thread runs again.
        """
        found = self._next(of_device=True)
        if found is not None:
            turn = self._queued(None)
            try:
                before()
            finally:  # also after an error, since no other thread would let it run
                self._switch(turn, found)

    def _queued(self, is_complete: Callable[[], bool] | None) -> Lock:
        """Return the lock of a thread that is now the last one."""
        with self._lock:
            return self._append(is_complete)

    def _append(self, is_complete: Callable[[], bool] | None) -> Lock:
        turn = Lock()
        turn.acquire()
        self._others.append((turn, is_complete))
        return turn

    def _switch(self, turn: Lock, found: Lock) -> None:
        """Let a thread run, which may be the calling one, whose lock is `turn`; return when it is its turn again."""
        found.release()
        turn.acquire()
        if self.is_over:
            raise CancelledError

    def _next(self, *, of_device: bool = False) -> Lock | None:
        """Remove and return the first thread that can run. of_device : only if it waited for the device"""
        with self._lock:
            others = tuple(self._others)
        for each in others:
            turn, is_complete = each
            if is_complete is None:
                is_able = not of_device
            else:
                try:
                    is_able = is_complete()
                except Exception:  # raised again in its thread
                    is_able = True
            if is_able:
                with self._lock:
                    self._others.remove(each)
                return turn
        return None


@dataclass(eq=False)
class Queue(Binder):
    """Queue of a device, which transfers arrays, launches kernels in order, and records their run times.

    A queue must be used by one thread only; a device may have several queues in different threads or callbacks. All
    queues with the same `profile` share one OpenCL command queue. Call `finish` before buffers are used in a queue with
    another `profile`.

    profile : whether to record times, which increases the launch overhead
    own_command_queue : separate command queue; None to use the shared one
    pool : of buffers that can be written; None to create each
    turns : held by the thread that uses the queue, and given to others while it waits for a read
    allocated : total bytes of all buffers created, including released ones
    held : buffers kept alive with the queue
    events : of the launches, in order; firsts : indices of first launches of kernels on the device
    steps : index of the first launch of each step, by name
    pending_writes : events of writes in progress; they are kept because releasing a pending event blocks the host
    """

    profile: bool = True
    own_command_queue: CommandQueue | None = None
    pool: BufferPool | None = None
    turns: Turns | None = None
    held: list[Buffer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    firsts: set[int] = field(default_factory=set)
    steps: dict[str, int] = field(default_factory=dict)
    allocated: int = 0
    pending_writes: deque[Event] = field(default_factory=deque)
    # For copies of pieces: staging buffers, and launches by kernel and buffers.
    _staging: dict[str, Buffer] = field(default_factory=dict)
    _bound_pieces: dict[tuple[object, ...], BoundLaunch] = field(default_factory=dict)

    @property
    def command_queue(self) -> CommandQueue:
        """OpenCL command queue of this queue. Raises DeviceError after a fork."""
        _, timing, plain = self.device.queues
        return self.own_command_queue or (timing if self.profile else plain)

    def upload(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        """Upload values to a read-only buffer, by default in the queue's precision."""
        array = np.ascontiguousarray(values, dtype or self.dtype)
        if array.size == 0:  # OpenCL does not support empty buffers
            return self.empty(0, dtype)
        return self._buffer(array.nbytes, array.dtype, array)

    def send(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        """Upload values with a command of this queue; only this queue may use the buffer.

        A buffer of `upload` blocks the host on NVIDIA devices until all kernels are complete when it is first used.
        """
        array = np.array(values, dtype or self.dtype, order="C")
        if array.size == 0 or self.device.kind == "CPU":
            return self.upload(array, array.dtype)
        buffer = self.empty(array.size, array.dtype)
        self.enqueue_write(buffer, array)
        return buffer

    def upload_each(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        return self.upload(values, dtype)

    def cached(self, key: Hashable, make: Callable[[], ArrayLike]) -> Buffer:
        """Upload the values that `make` returns; the device caches the buffer by key."""
        cached = self.device.cached
        buffer = cached.pop(key, None) or self.upload(make())
        if buffer.size <= self.device.memory // CACHED_SHARE:
            for oldest in list(cached)[: len(cached) + 1 - MOST_CACHED]:
                cached.pop(oldest, None)
            cached[key] = buffer
        return buffer

    def table(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        """Upload a table; the device caches small ones by content."""
        array, tables = np.ascontiguousarray(values, dtype or self.dtype), self.device.tables
        if array.nbytes > LARGEST_TABLE:
            return self.upload(array, array.dtype)
        key = array.dtype.char, array.tobytes()
        buffer = tables.get(key)
        if buffer is None:
            if len(tables) >= MOST_TABLES:
                tables.clear()
            buffer = tables[key] = self.upload(array, array.dtype)
        return buffer

    def empty(self, n: int, dtype: DTypeLike | None = None) -> Buffer:
        """Create an uninitialized buffer of n values, by default reals; with a pool, it may be larger."""
        kind = np.dtype(dtype or self.dtype)
        size = max(1, n) * kind.itemsize
        if self.pool is not None:
            buffer = self.pool.take(size, lambda rounded: self._buffer(rounded, kind))
            buffer.dtype, buffer.is_read_only = kind, False
            return buffer
        buffer = self._buffer(size, kind)
        if size >= LARGE and self.device.kind == "CPU":
            with self.device:
                ask_for_large_pages(self.command_queue, buffer)
        return buffer

    def in_common(self, n: int, dtype: DTypeLike | None = None) -> Buffer:
        buffer = self.empty(n, dtype)
        if self.device.shares_memory:
            with self.device:
                buffer.host = map_whole(self.command_queue, buffer)
        return buffer

    def zeros(self, n: int, dtype: DTypeLike | None = None) -> Buffer:
        """Create a buffer of n zeros."""
        buffer = self.empty(n, dtype)
        self.clear(buffer)
        return buffer

    def clear(self, buffer: Buffer, first: int = 0, size: int | None = None) -> None:
        """Fill a buffer with zeros from byte `first`. size : bytes to fill, by default up to the end"""
        end = buffer.size if size is None else first + size
        zero = np.zeros(16 if first % 16 == end % 16 == 0 else 1, np.uint8)  # GPUs fill faster with 16-byte patterns
        with self.device:
            filled = min(FILLED, end - first)
            cl.enqueue_fill_buffer(self.command_queue, buffer, zero, first, filled)
            for begin in range(first + filled, end, FILLED):
                part = min(FILLED, end - begin)
                cl.enqueue_copy(self.command_queue, buffer, buffer, src_offset=first, dst_offset=begin, byte_count=part)

    def _buffer(self, size: int, dtype: np.dtype[Any], values: NDArray[Any] | None = None) -> Buffer:
        """Create a buffer of `size` bytes, read-only if values are given. Raises DeviceError if memory is short."""
        has = cl.mem_flags
        flags = has.READ_WRITE if values is None else has.READ_ONLY | has.COPY_HOST_PTR
        self.allocated += size
        self.device.require_memory(size, size)
        with self.device:
            buffer = Buffer(self.device.context, flags, size, hostbuf=values)
        buffer.dtype, buffer.is_read_only = dtype, values is not None
        buffer.counted = self.device.buffers.count(buffer, size)
        return buffer

    def part(self, buffer: Buffer, first: int, size: int) -> Buffer:
        """Return `size` bytes of a buffer, starting at byte `first`, as a sub-buffer."""
        with self.device:
            return part_of(buffer, first, size)

    def download(self, buffer: Buffer, n: int, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """Read the first n values of a buffer, by default reals, after all earlier commands."""
        array = np.empty(n, dtype or self.dtype)
        self.read(array, buffer)
        return array

    def write(self, buffer: Buffer, values: NDArray[Any], first: int = 0) -> None:
        """Write an array to a buffer. first : index of the first value in the buffer"""
        array = np.ascontiguousarray(values)  # PyOpenCL does not reorder arrays in Fortran order
        with self.device:
            cl.enqueue_copy(self.command_queue, buffer, array, dst_offset=first * array.itemsize)

    def copy_bytes(self, source: Buffer, first: int, target: Buffer, to: int, size: int) -> None:
        """Copy `size` bytes from byte `first` of a buffer to byte `to` of another or the same buffer."""
        with self.device:
            cl.enqueue_copy(self.command_queue, target, source, src_offset=first, dst_offset=to, byte_count=size)

    def read(self, array: NDArray[Any], buffer: Buffer, first: int = 0) -> None:
        """Read an array from a buffer after all earlier commands. first : index of the first value in the buffer"""
        if self.turns is not None:
            with self.device:
                done = cl.enqueue_marker(self.command_queue)
                self.command_queue.flush()
            self.turns.wait(lambda: self.is_complete(done))
        with self.device:
            cl.enqueue_copy(self.command_queue, array, buffer, src_offset=first * array.itemsize)

    def reaches(self, array: NDArray[Any]) -> bool:
        """Return whether the device can write a large result directly to host memory.

        NVIDIA devices can, from the second use of the memory; the driver then also allocates as much device memory.
        """
        device = self.device
        if device.vendor != "NVIDIA":
            return False
        if device.results.has_registered(array):
            return True
        if device.held_bytes + LARGE_SHARE * array.nbytes > device.memory:
            return False
        with device:
            return device.results.register(device.context, array) is not None

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> NDArray[Any]:
        """Create a host array in pinned memory, which the device can access while the host does other work."""
        dtype = np.dtype(dtype or self.dtype)
        size = math.prod(shape) * dtype.itemsize
        self.device.require_memory(size, size)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        with self.device:
            buffer = cl.Buffer(self.device.context, flags, size)
            access: Any = cl.map_flags.READ | cl.map_flags.WRITE
            array: NDArray[Any] = cl.enqueue_map_buffer(self.command_queue, buffer, access, 0, shape, dtype)[0]
        self.device.mapped.count(array, size)
        return array

    @contextmanager
    def mapped(self, buffer: Buffer, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """Map a buffer as an array after all earlier commands; on CPUs this is the buffer's memory itself.

        The array must not be used after the block.
        """
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        command_queue, kind = self.command_queue, np.dtype(dtype)
        with self.device:
            array: NDArray[Any] = cl.enqueue_map_buffer(command_queue, buffer, access, 0, shape, kind)[0]
        memory: Any = array.base
        try:
            yield array
        finally:
            with self.device:
                memory.release(self.command_queue)
            self.finish()

    def start_write(self, buffer: Buffer, values: NDArray[Any], first: int = 0) -> Event:
        """Start writing an array to a buffer.

        The array must not change before the event completes, and the event must be kept until then.
        """
        array = np.ascontiguousarray(values)
        with self.device:
            return cl.enqueue_copy(
                self.command_queue, buffer, array, dst_offset=first * array.itemsize, is_blocking=False
            )

    def start_read(self, array: NDArray[Any], buffer: Buffer, first: int = 0) -> Event:
        """Start reading an array from a buffer after all earlier commands. Keep the event until it completes."""
        command_queue = self.command_queue
        with self.device:
            event = cl.enqueue_copy(command_queue, array, buffer, src_offset=first * array.itemsize, is_blocking=False)
            command_queue.flush()
            return event

    def wait(self, event: Event) -> None:
        """Wait for an event."""
        try:
            event.wait()
        except cl.Error as error:
            raise refusal(self.device, error) from error

    def is_complete(self, event: Event) -> bool:
        """Return whether an event is complete or has failed; failed commands have a negative status."""
        with self.device:
            return bool(event.command_execution_status <= cl.command_execution_status.COMPLETE)

    def finish(self) -> None:
        """Wait until all commands are complete."""
        with self.device:
            self.command_queue.finish()

    def move_pieces(self, source: Buffer, target: Buffer, begin: Places, end: Places, sizes: NDArray[np.int64]) -> None:
        """Start copying pieces from byte offsets `begin` of a buffer to byte offsets `end` of another.

        Within one buffer, pieces may move to the previous positions of other pieces.
        """
        if len(sizes) == 1:
            if source is not target or begin[0] != end[0]:
                self.copy_bytes(source, int(begin[0]), target, int(end[0]), _whole(int(sizes[0])))
            return
        if source is target and np.isin(begin, end).any():
            between = self._staged("moved", int(sizes.sum()))
            places = np.append(0, np.cumsum(sizes[:-1])).astype(np.uint64)
            self.move_pieces(source, between, begin, places, sizes)
            source, begin = between, places
        self._launch_pieces("copy_pieces", begin, end, sizes, {"source": source, "target": target})

    def clear_pieces(self, target: Buffer, begin: Places, sizes: NDArray[np.int64]) -> None:
        """Start filling pieces with zeros."""
        if len(sizes) == 1:
            if sizes[0]:
                self.clear(target, int(begin[0]), int(sizes[0]))
            return
        self._launch_pieces("clear_pieces", begin, begin, sizes, {"target": target})

    def scatter(self, target: Buffer, pieces: Sequence[tuple[Places, NDArray[Any]]]) -> None:
        """Start writing values. pieces : byte offsets (m,) of the rows, and their values (m, size) of any type"""
        there = [(begin, np.ascontiguousarray(values)) for begin, values in pieces if len(begin) and values.size]
        if not there:
            return
        widths = [_whole(values[0].nbytes) for _, values in there]
        if len(there) == 1 and widths[0] == there[0][1][0].nbytes:
            (begin, values), width = there[0], widths[0]
            if len(begin) == 1:
                self.enqueue_write(target, values.view(np.uint8), int(begin[0]))
                return
            between = self._staged("values", values.nbytes)
            self.enqueue_write(between, values)
            starts = np.arange(len(begin), dtype=np.uint64) * np.uint64(width)
            self.move_pieces(between, target, starts, begin, np.full(len(begin), width))
            return
        firsts = np.cumsum([0, *(len(begin) * width for (begin, _), width in zip(there, widths, strict=True))])
        staged = np.zeros(int(firsts[-1]), np.uint8)
        for (begin, values), width, first in zip(there, widths, firsts.tolist(), strict=False):
            rows = staged[first : first + len(begin) * width].reshape(len(begin), width)
            rows[:, : values[0].nbytes] = values.view(np.uint8).reshape(len(begin), -1)
        between = self._staged("values", staged.nbytes)
        self.enqueue_write(between, staged)
        sizes = np.concatenate([np.full(len(begin), width) for (begin, _), width in zip(there, widths, strict=True)])
        starts = np.append(0, np.cumsum(sizes[:-1])).astype(np.uint64)
        self.move_pieces(between, target, starts, np.concatenate([begin for begin, _ in there]), sizes)

    @contextmanager
    def pinned(self, shape: tuple[int, int], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """Provide an array to fill and scatter within the block, in pinned memory if it is large."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if size < PINNED:
            yield np.empty(shape, kind)
            return
        with borrowed(self, size, 1) as (memory,):
            yield memory[:size].view(kind).reshape(shape)
            self.finish()

    def gather(
        self, source: Buffer, begin: Places, size: int, dtype: DTypeLike, to: DTypeLike | None = None
    ) -> NDArray[Any]:
        """Read pieces of `size` bytes each, after all earlier commands.

        dtype : type of the values; to : type to convert them to, by default the same

        Returns an array with a row per piece.
        """
        width, kind = _whole(size), np.dtype(dtype)
        to = np.dtype(to or kind)
        shape = len(begin), width
        if not math.prod(shape):
            return np.empty((len(begin), size // kind.itemsize), to)
        if len(begin) == 1:
            single = np.empty((1, size // kind.itemsize), kind)
            self.read(single.view(np.uint8), source, int(begin[0]))
            return single.astype(to, copy=False)
        between = self._staged("read", math.prod(shape))
        places = np.arange(len(begin), dtype=np.uint64) * np.uint64(width)
        self.move_pieces(source, between, begin, places, np.full(len(begin), width))
        if math.prod(shape) < PINNED:
            array = np.empty(shape, np.uint8)
            self.read(array, between)
            return array[:, :size].view(kind).astype(to, copy=False)
        with borrowed(self, math.prod(shape), 1) as (memory,):
            staged = memory[: math.prod(shape)].reshape(shape)
            self.read(staged, between)
            values = staged[:, :size].view(kind)
            found = self.device.results.array((len(begin), size // kind.itemsize), to)

            def copy(rows: slice) -> None:
                found[rows] = values[rows]

            by_rows(len(found), found.shape[1], copy)
        return found

    def _staged(self, name: str, size: int) -> Buffer:
        """Return a staging buffer of at least `size` bytes; it is kept for reuse."""
        if name not in self._staging or self._staging[name].size < size:
            self._staging.pop(name, None)
            self._bound_pieces.clear()  # they refer to the smaller buffer
            self._staging[name] = self.empty(size, np.uint8)
        return self._staging[name]

    def _launch_pieces(
        self, name: str, begin: Places, end: Places, sizes: NDArray[np.int64], buffers: Mapping[str, Buffer]
    ) -> None:
        if not len(sizes):
            return
        places = np.empty((len(sizes), 3), np.uint64)
        places[:, 0], places[:, 1], places[:, 2] = begin // np.uint64(WORD), end // np.uint64(WORD), -(-sizes // WORD)
        there = self._staged("places", places.nbytes)
        self.enqueue_write(there, places)
        key = name, *map(id, buffers.values())
        if key not in self._bound_pieces:
            items = min(PIECE_GROUP, self.device.largest_group)
            arguments = {"places": there, **buffers}
            self._bound_pieces[key] = self.bind("engine/copy.cl", name, (items, 1), (items, 1), arguments)
        bound = self._bound_pieces[key]
        items = bound.group[0]
        bound.shape = -(-min(PIECE_ITEMS, max(1, int(places[:, 2].max()))) // items) * items, 1
        for first in range(0, len(sizes), MOST_PIECES):
            self.launch_bound([bound], min(MOST_PIECES, len(sizes) - first), first=first)

    def free_staging(self) -> None:
        """Free the staging buffers, and the launches that use them."""
        self._staging.clear()
        self._bound_pieces.clear()

    def new_queue(self, profile: bool) -> Queue:
        """Create another queue of the device. profile : whether to record times"""
        return Queue(self.device, self.precision, profile=profile)

    @contextmanager
    def independent_queue(self, turns: Turns | None = None, *, reuses_memory: bool = False) -> Iterator[Queue]:
        """Provide a queue with a separate command queue; its commands can run concurrently with other queues.

        The queue does not record times.

        turns : as in Queue
        reuses_memory : whether the memory of deleted buffers is reused for later ones, until the end of the block.
            NVIDIA's runtime takes long to map a new buffer, and waits for all kernels before it frees one. No other
            queue may use the buffers, because its commands could still run when the memory is reused
        """
        spare = self.device.spare
        try:
            own = spare.pop()
        except IndexError:
            with self.device:
                own = cl.CommandQueue(self.device.context)
            self.device.further.append(own)
        pool = BufferPool() if reuses_memory else None
        if pool is not None:
            self.device.pools.append(pool)
        try:
            yield Queue(self.device, self.precision, profile=False, own_command_queue=own, pool=pool, turns=turns)
        finally:
            if pool is not None:
                self.device.pools.remove(pool)
            spare.append(own)

    def upload_and_keep(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        """Upload values to a buffer that is kept alive with this queue; only this queue may use it.

        Releasing a buffer earlier would block the host, because NVIDIA's runtime waits for all kernels before it frees
        memory.
        """
        self.held.append(self.upload(values, dtype))
        return self.held[-1]

    def enqueue_write(self, buffer: Buffer, values: NDArray[Any], first: int = 0) -> None:
        """Start writing an array to a buffer, at value `first`; the array must not be modified afterwards."""
        while self.pending_writes and self.is_complete(self.pending_writes[0]):
            self.pending_writes.popleft()
        self.pending_writes.append(self.start_write(buffer, values, first))

    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> Kernel:
        """Build a kernel in the queue's precision."""
        return get_kernel(self.device, file, name, self.precision, width, self.portable, False, **defines)

    def launch(
        self, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: Arguments,
        *, offset: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        """Launch a kernel over `shape` work-items, rounded up to whole groups of a supported size.

        arguments : by parameter name
        offset : index of the first work-item in each dimension
        """
        group = self._allowed(kernel, group)
        kernel_object = kernel.borrow()
        try:
            set_arguments(self.device, kernel_object, kernel.signature.arguments(arguments))
            event = self._enqueue(kernel, kernel_object, shape, group, offset)
            if self.profile:
                self.events.append(event)
        finally:
            kernel.give_back(kernel_object)

    def bind(
        self, file: str, name: str, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        width: int = 1, cost: float = 0.0, divisible: int = 1, **defines: int,
    ) -> BoundLaunch:  # fmt: skip
        """Build a kernel and bind its arguments to a separate kernel object; see Binder."""
        kernel = self.kernel(file, name, width, **defines)
        return self.bind_kernel(kernel, shape, group, arguments, cost=cost, divisible=divisible)

    def bind_kernel(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        cost: float = 0.0, divisible: int = 1,
    ) -> BoundLaunch:  # fmt: skip
        """Bind an already built kernel."""
        args = kernel.signature.arguments(arguments)
        return BoundLaunch(self.device, kernel, *self._fitted(kernel, shape, group), args, cost, divisible)

    def launch_bound(
        self, launches: Sequence[BoundLaunch], n_conformations: int, tell: Progress | None = None, first: int = 0
    ) -> None:
        """Run launches one after another for n_conformations, starting at conformation `first`.

        The loop is short because a kernel may finish before the next one is launched.

        tell : called with the fraction of pairs done

        With `tell`, and for long launches, launches are split into slabs that are waited for, if `first` is 0.
        """
        most_cost = max([launch.cost for launch in launches], default=0.0) * n_conformations
        if most_cost and not first and (tell or most_cost > LONG_LAUNCH_PAIRS):
            self._launch_slabs(launches, n_conformations, tell)
            return
        command_queue = self.command_queue
        with self.device:
            for launch in launches:
                shape = (*launch.shape, n_conformations)
                offset = (launch.offset, 0, first) if first or launch.offset else None
                if self.profile:
                    self._record_first(launch.kernel)
                    self.events.append(
                        cl.enqueue_nd_range_kernel(command_queue, launch.kernel_object, shape, launch.group, offset)
                    )
                else:
                    cl.enqueue_nd_range_kernel(command_queue, launch.kernel_object, shape, launch.group, offset)
        self.offer_turn()

    def offer_turn(self) -> None:
        """Let another thread run if its commands are complete; for loops on the host."""
        if self.turns is not None:
            self.turns.offer(self.submit)

    def write_launch_read(
        self, source: Buffer, values: NDArray[Any], launches: Sequence[BoundLaunch], target: Buffer, array: NDArray[Any]
    ) -> Sequence[Event]:
        """Write values, launch one conformation per row of values, and read an array, without waiting.

        Combines `start_write`, `launch_bound` and `start_read` for launches that are not split. Arrays that share
        memory with the buffers are not copied.
        """
        command_queue, count, events = self.command_queue, len(values), list[Event]()
        try:
            if not shares_memory(source, values):
                events.append(cl.enqueue_copy(command_queue, source, values, is_blocking=False))
            for launch in launches:
                offset = (launch.offset, 0, 0) if launch.offset else None
                shape = *launch.shape, count
                events.append(
                    cl.enqueue_nd_range_kernel(command_queue, launch.kernel_object, shape, launch.group, offset)
                )
            if not shares_memory(target, array):
                events.append(cl.enqueue_copy(command_queue, array, target, is_blocking=False))
            command_queue.flush()
        except cl.Error as error:
            raise refusal(self.device, error) from error
        return events

    def _launch_slabs(self, launches: Sequence[BoundLaunch], n_conformations: int, tell: Progress | None) -> None:
        done, all_costs = 0.0, sum(launch.cost for launch in launches)
        for launch in launches:
            for share in self._slabs_of(launch, n_conformations):
                if tell is not None and launch.cost:
                    tell((done + launch.cost * share) / all_costs)
            done += launch.cost

    def _slabs_of(self, launch: BoundLaunch, n_conformations: int) -> Iterator[float]:
        """Launch slabs of the first dimension, wait for each, and yield the fraction done."""
        whole, done = launch.shape[0], 0
        slab = whole
        if launch.divisible and launch.cost:
            share = min(1.0, FIRST_SLAB_PAIRS / (launch.cost * n_conformations))
            slab = whole_groups(int(whole * share), launch.group[0])
        while done < whole:
            count = min(slab, whole - done)
            shape = count, launch.shape[1], n_conformations
            start = time.perf_counter()
            self._record_first(launch.kernel)
            with self.device:
                offset = launch.offset + done, 0, 0
                event = cl.enqueue_nd_range_kernel(
                    self.command_queue, launch.kernel_object, shape, launch.group, offset
                )
                event.wait()
            if self.profile:
                self.events.append(event)
            done += count
            seconds = max(time.perf_counter() - start, 1e-6)
            slab = whole_groups(int(count * min(8.0, SLAB_SECONDS / seconds)), launch.group[0])
            yield done / whole

    def begin_step(self, name: str) -> None:
        """Assign the following launches to a named step."""
        self.steps[name] = len(self.events)

    def step(self, name: str) -> slice:
        """Return the slice of launches that belong to a step."""
        first = self.steps[name]
        later = [start for start in self.steps.values() if start > first]
        return slice(first, min(later, default=len(self.events)))

    def _allowed(self, kernel: Kernel, group: tuple[int, ...]) -> tuple[int, ...]:
        """Limit a work-group to the size that the kernel supports."""
        return min(group[0], self._most_items(kernel)), *group[1:]

    def _enqueue(
        self, kernel: Kernel, kernel_object: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...],
        offset: tuple[int, ...] | None = None,
    ) -> Event:  # fmt: skip
        shape = tuple(whole_groups(n, g) for n, g in zip(shape, group, strict=True))
        self._record_first(kernel)
        with self.device:
            return cl.enqueue_nd_range_kernel(self.command_queue, kernel_object, shape, group, offset)

    def submit(self) -> None:
        """Submit all commands to the device; some runtimes delay them until results are requested."""
        with self.device:
            self.command_queue.flush()

    def _record_first(self, kernel: Kernel) -> None:
        """Record the next launch as the kernel's first on the device, if it is."""
        if not kernel.launched:
            kernel.launched = True
            self.firsts.add(len(self.events))

    @property
    def kernel_seconds(self) -> float:
        """Total run time of the kernels by the device's clock, without gaps between them, s."""
        return self.launched_seconds(slice(None))

    def launched_seconds(self, part: slice) -> float:
        """Return the total run time of the kernels in a slice of the launches, without gaps, s."""
        self.finish()
        return sum(map(seconds_of, self.events[part]), 0.0)

    @property
    def elapsed_seconds(self) -> float:
        """Time from the start of the first kernel to the end of the last by the device's clock, s.

        The time before a kernel's first launch on the device is not counted.
        """
        return self.elapsed(slice(None))

    def elapsed(self, part: slice) -> float:
        """Return the elapsed time of a slice of the launches, s, as in `elapsed_seconds`."""
        self.finish()
        return elapsed_seconds(self.events, self.firsts, part)


def read_without_padding(
    queue: Queue, values: NDArray[Any], buffer: Buffer, first: int, shape: tuple[int, int], at_once: int
) -> None:
    """Read values (n, ny, nx) from padded slices of a buffer, after all earlier commands.

    first : index of the first value in the buffer
    shape : rows and columns of a slice in the buffer, including padding
    at_once : values per transfer, at least one slice
    """
    per_slice = math.prod(shape)
    step = max(1, min(at_once // per_slice, len(values)))
    size, starts = step * per_slice * values.itemsize, range(0, len(values), step)
    under_way = deque[Future[None]]()

    def copy(part: NDArray[Any], staged: NDArray[Any], event: Event) -> None:
        queue.wait(event)
        part[:] = staged[:, : part.shape[1], : part.shape[2]]

    in_turn = min(IN_TURN, max(LEAST_IN_TURN, IN_TURN * at_once // (step * per_slice)))
    with borrowed(queue, size, min(in_turn, len(starts))) as arrays:
        for turn, start in enumerate(starts):
            if len(under_way) == len(arrays):
                under_way.popleft().result()
            part = values[start : start + step]
            room = arrays[turn % len(arrays)][:size].view(values.dtype)
            staged = room[: len(part) * per_slice].reshape(len(part), *shape)
            event = queue.start_read(staged, buffer, first + start * per_slice)
            under_way.append(copiers().submit(copy, part, staged, event))
        while under_way:
            under_way.popleft().result()


def start_making(values: NDArray[Any]) -> list[Future[None]]:
    """Start allocating the pages of a new array in threads."""

    def touch(part: NDArray[Any]) -> None:
        part[:: PAGE // part.itemsize] = 0

    return [copiers().submit(touch, part) for part in np.array_split(values.reshape(-1), MOST_COPIERS)]


@contextmanager
def borrowed(queue: Queue, size: int, count: int) -> Iterator[list[NDArray[np.uint8]]]:
    """Borrow pinned host arrays of at least `size` bytes, which are kept because allocation is slow."""
    kept = queue.device.staging
    arrays = []
    for _ in range(count):
        try:
            array = kept.popleft()
        except IndexError:  # testing first would race with other threads
            array = None
        arrays.append(array if array is not None and array.nbytes >= size else queue.host_array((size,), np.uint8))
    yield arrays  # not reused after an error, because a read may still be in progress
    kept.extend(arrays)


def _whole(size: int) -> int:
    """Round a size up to whole words, bytes."""
    return -(-size // WORD) * WORD
