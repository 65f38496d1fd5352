"""Buffers and mapped arrays on a device, and the copies to and from them.

Large arrays are read into pinned host memory in parts; threads copy each part while the next ones are transferred.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..common.errors import DeviceError
from ..common.threads import MOST_COPIERS, copiers
from .binding import Binder
from .device import device_errors, refusal
from .memory import LARGE, Buffer, CommandQueue, ask_for_large_pages, pages_of, part_of

Event = cl.Event

MOST_CACHED = 2  # buffers that a device keeps
CACHED_SHARE = 16  # the part of its memory that one of them takes at most

FILLED = 1 << 28  # bytes that are filled, and then copied: NVIDIA's OpenCL hangs if it fills more than 2 GiB

IN_TURN, LEAST_IN_TURN = 8, 2  # arrays of host memory; fewer of larger slices, lest the host keep many times as much
PAGE = 4096  # bytes of host memory that come at a time, at least
FILLED_BY_ITSELF = ("NVIDIA",)  # vendors of devices that write to memory of the host which they are told of


@dataclass(eq=False)
class Transfers(Binder):
    """Arrays on a device in one precision, and copies in one of its queues.

    profile : whether the command queue is the one that takes times
    own_command_queue : one in which nothing of others waits; None for the one of all queues
    allocated : bytes of all buffers made so far, gone ones included
    """

    profile: bool = field(init=False)
    own_command_queue: CommandQueue | None = field(init=False)
    allocated: int = field(init=False)

    @property
    def command_queue(self) -> CommandQueue:
        """Command queue in which everything waits. Raises DeviceError after a fork."""
        _, timing, plain = self.device.queues
        return self.own_command_queue or (timing if self.profile else plain)

    def upload(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        """A buffer of the values that kernels only read, in the queue's precision where no other type is given."""
        array = np.ascontiguousarray(values, dtype or self.dtype)
        if array.size == 0:  # OpenCL has no empty buffers
            return self.empty(0, dtype)
        return self._buffer(array.nbytes, array.dtype, array)

    def upload_each(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        return self.upload(values, dtype)

    def cached(self, key: Hashable, make: Callable[[], ArrayLike]) -> Buffer:
        """Upload what `make` gives, which the device keeps for the next time that the key is met."""
        cached = self.device.cached
        buffer = cached.pop(key, None) or self.upload(make())
        if buffer.size <= self.device.memory // CACHED_SHARE:
            for oldest in list(cached)[: len(cached) + 1 - MOST_CACHED]:
                cached.pop(oldest, None)
            cached[key] = buffer
        return buffer

    def empty(self, n: int, dtype: DTypeLike | None = None) -> Buffer:
        """An uninitialised buffer of n values, reals where no other type is given."""
        kind = np.dtype(dtype or self.dtype)
        size = max(1, n) * kind.itemsize
        buffer = self._buffer(size, kind)
        if size >= LARGE and self.device.kind == "CPU":
            with device_errors(self.device):
                ask_for_large_pages(self.command_queue, buffer)
        return buffer

    def zeros(self, n: int, dtype: DTypeLike | None = None) -> Buffer:
        """A buffer of n zeros."""
        buffer = self.empty(n, dtype)
        self.clear(buffer)
        return buffer

    def clear(self, buffer: Buffer, first: int = 0, size: int | None = None) -> None:
        """Fill a buffer with zeros, from its byte `first` on, to its end or so many bytes."""
        end = buffer.size if size is None else first + size
        zero = np.zeros(16 if first % 16 == end % 16 == 0 else 1, np.uint8)  # GPUs are faster with 16 bytes at a time
        with device_errors(self.device):
            filled = min(FILLED, end - first)
            cl.enqueue_fill_buffer(self.command_queue, buffer, zero, first, filled)
            for begin in range(first + filled, end, FILLED):
                part = min(FILLED, end - begin)
                cl.enqueue_copy(self.command_queue, buffer, buffer, src_offset=first, dst_offset=begin, byte_count=part)

    def _buffer(self, size: int, dtype: np.dtype[Any], values: NDArray[Any] | None = None) -> Buffer:
        """Make a buffer of `size` bytes, for reading alone if it has values. Raises DeviceError if memory is short."""
        has = cl.mem_flags
        flags = has.READ_WRITE if values is None else has.READ_ONLY | has.COPY_HOST_PTR
        self.allocated += size
        self.device.require_memory(size, size)
        with device_errors(self.device):
            buffer = Buffer(self.device.context, flags, size, hostbuf=values)
        buffer.dtype, buffer.is_read_only = dtype, values is not None
        self.device.buffers.count(buffer, size)
        return buffer

    def part(self, buffer: Buffer, first: int, size: int) -> Buffer:
        """Return so many bytes of a buffer, from its byte `first` on, as a buffer of their own."""
        with device_errors(self.device):
            return part_of(buffer, first, size)

    def download(self, buffer: Buffer, n: int, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """Read the first n values of a buffer, reals if no other type is given, after everything before."""
        array = np.empty(n, dtype or self.dtype)
        self.read(array, buffer)
        return array

    def write(self, buffer: Buffer, values: NDArray[Any], first: int = 0) -> None:
        """Fill a buffer from an array, from its value `first` on."""
        with device_errors(self.device):
            cl.enqueue_copy(self.command_queue, buffer, values, dst_offset=first * values.itemsize)

    def copy_part(self, buffer: Buffer, size: int, source: int, target: int) -> None:
        """Copy a part of a buffer, of so many bytes, to another of its parts, counted in parts."""
        self.copy_bytes(buffer, source * size, buffer, target * size, size)

    def copy_bytes(self, source: Buffer, first: int, target: Buffer, to: int, size: int) -> None:
        """Copy so many bytes of a buffer, from its byte `first` on, to byte `to` of another or the same."""
        with device_errors(self.device):
            cl.enqueue_copy(self.command_queue, target, source, src_offset=first, dst_offset=to, byte_count=size)

    def read(self, array: NDArray[Any], buffer: Buffer, first: int = 0) -> None:
        """Fill the array from a buffer, from its value `first` on, once everything before is done."""
        with device_errors(self.device):
            cl.enqueue_copy(self.command_queue, array, buffer, src_offset=first * array.itemsize)

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array that the device reads and fills by itself, while the host does something else."""
        dtype = np.dtype(dtype or self.dtype)
        size = math.prod(shape) * dtype.itemsize
        self.device.require_memory(size, size)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        with device_errors(self.device):
            buffer = cl.Buffer(self.device.context, flags, size)
            access: Any = cl.map_flags.READ | cl.map_flags.WRITE
            array: NDArray[Any] = cl.enqueue_map_buffer(self.command_queue, buffer, access, 0, shape, dtype)[0]
        self.device.mapped.count(array, size)
        return array

    @contextmanager
    def mapped(self, buffer: Buffer, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """Map a buffer as an array, once everything before is done; a CPU's is its memory itself.

        The array must not be used after the block.
        """
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        command_queue, kind = self.command_queue, np.dtype(dtype)
        with device_errors(self.device):
            array: NDArray[Any] = cl.enqueue_map_buffer(command_queue, buffer, access, 0, shape, kind)[0]
        memory: Any = array.base
        try:
            yield array
        finally:
            with device_errors(self.device):
                memory.release(self.command_queue)
            self.finish()

    def start_write(self, buffer: Buffer, values: NDArray[Any], first: int = 0) -> Event:
        """Start to fill a buffer from an array, which stays as it is until the event. The event is to be kept."""
        with device_errors(self.device):
            return cl.enqueue_copy(
                self.command_queue, buffer, values, dst_offset=first * values.itemsize, is_blocking=False
            )

    def start_read(self, array: NDArray[Any], buffer: Buffer, first: int = 0) -> Event:
        """Start to fill an array from a buffer, after everything before; the event is to be kept."""
        command_queue = self.command_queue
        with device_errors(self.device):
            event = cl.enqueue_copy(command_queue, array, buffer, src_offset=first * array.itemsize, is_blocking=False)
            command_queue.flush()
            return event

    def wait(self, event: Event) -> None:
        """Wait for an event."""
        try:
            event.wait()
        except cl.Error as error:
            raise refusal(self.device, error) from error

    def has_come(self, event: Event) -> bool:
        """Return whether an event has come."""
        with device_errors(self.device):
            return bool(event.command_execution_status == cl.command_execution_status.COMPLETE)

    def flush(self) -> None:
        """Let the device begin with everything that was started."""
        with device_errors(self.device):
            self.command_queue.flush()

    def finish(self) -> None:
        """Wait for everything that was started."""
        with device_errors(self.device):
            self.command_queue.finish()


def read_without_padding(
    queue: Transfers, values: NDArray[Any], buffer: Buffer, first: int, shape: tuple[int, int], at_once: int
) -> None:
    """Fill values (n, ny, nx) from slices of a buffer, from its value `first` on, once everything before is done.

    shape : of a slice in the buffer, rows and columns; beyond ny and nx is padding
    at_once : values that are transferred at a time, at least a slice
    """
    per_slice = math.prod(shape)
    step = max(1, at_once // per_slice)
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


def can_be_filled(queue: Transfers, values: NDArray[Any]) -> bool:
    """Tell if a GPU writes to the memory of a result by itself; memory that serves for the second time is made so."""
    device, pages = queue.device, pages_of(values)
    if device.vendor not in FILLED_BY_ITSELF or pages is None or pages.is_fresh:
        return False
    if pages.pinned is None:
        size, has = pages.bytes.nbytes, cl.mem_flags
        try:
            device.require_memory(size, size)
            buffer = Buffer(device.context, has.READ_WRITE | has.USE_HOST_PTR, hostbuf=pages.bytes)
            kept: Any = cl.enqueue_map_buffer(
                queue.command_queue, buffer, cl.map_flags.READ, 0, (size,), np.dtype(np.uint8)
            )[0]
        except (DeviceError, cl.Error):
            return False
        device.buffers.count(buffer, size)
        pages.pinned = buffer, kept
    return True


def read_part(queue: Transfers, values: NDArray[Any], buffer: Buffer, first: int, shape: tuple[int, int]) -> None:
    """Fill values (n, ny, nx) as read_without_padding does, at once, where can_be_filled."""
    if values.shape[1:] == shape:
        queue.read(values, buffer, first)
        return
    item, (n, ny, nx), (rows, columns) = values.itemsize, values.shape, shape
    copy: Any = cl.enqueue_copy  # whose types know no boxes of NumPy's memory
    with device_errors(queue.device):
        copy(
            queue.command_queue, values, buffer, buffer_origin=(first * item, 0, 0), host_origin=(0, 0, 0),
            region=(nx * item, ny, n), buffer_pitches=(columns * item, rows * columns * item),
            host_pitches=(nx * item, ny * nx * item),
        )  # fmt: skip


def start_making(values: NDArray[Any]) -> list[Future[None]]:
    """Let threads make the memory of an array that nothing was written to: the system does so by pages."""

    def touch(part: NDArray[Any]) -> None:
        part[:: PAGE // part.itemsize] = 0

    return [copiers().submit(touch, part) for part in np.array_split(values.reshape(-1), MOST_COPIERS)]


@contextmanager
def borrowed(queue: Transfers, size: int, count: int) -> Iterator[list[NDArray[np.uint8]]]:
    """Arrays of at least so many bytes, which the device keeps for later reads: to make them takes long."""
    kept = queue.device.staging
    arrays = []
    for _ in range(count):
        try:
            array = kept.popleft()
        except IndexError:  # to ask before would race with other threads
            array = None
        arrays.append(array if array is not None and array.nbytes >= size else queue.host_array((size,), np.uint8))
    yield arrays  # not kept after an error: a read may still be under way
    kept.extend(arrays)
