"""Memory on a device."""

from __future__ import annotations

import ctypes
import math
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 22  # bytes of a buffer that has large pages
PAGE = mmap.PAGESIZE

LEAST_REUSED, MOST_REUSED = 1 << 22, 1 << 27  # bytes of host memory of a result that is used again
KEPT = 4  # pieces of such memory that are not in use

CommandQueue = cl.CommandQueue


class Buffer(cl.Buffer):
    """Memory of a device. PyOpenCL's own buffers take no weak references, so they cannot be counted.

    dtype : of its values; is_read_only : if kernels may only read it; counted : ends its being counted as in use
    host : its memory as an array, mapped for good where kernels work in the host's memory; not for use while they run
    """

    dtype: np.dtype[Any]
    is_read_only: bool
    counted: Callable[[], object]
    host: NDArray[Any] | None = None

    def holds(self, array: NDArray[Any]) -> bool:
        """Return whether an array is memory of the buffer."""
        return self.host is not None and np.may_share_memory(self.host, array)


def part_of(buffer: Buffer, first: int, size: int) -> Buffer:
    """Return `size` bytes of a buffer, from byte `first` on, as a buffer."""
    part: Any = buffer.get_sub_region(first, size)
    part.dtype, part.is_read_only = buffer.dtype, buffer.is_read_only
    found: Buffer = part
    return found


def map_whole(queue: CommandQueue, buffer: Buffer) -> NDArray[Any]:
    """Map a buffer after all earlier commands. The array keeps the memory alive; deleting it unmaps the buffer."""
    access: Any = cl.map_flags.READ | cl.map_flags.WRITE
    shape = (buffer.size // buffer.dtype.itemsize,)
    array: NDArray[Any] = cl.enqueue_map_buffer(queue, buffer, access, 0, shape, buffer.dtype)[0]
    return array


def ask_for_large_pages(queue: CommandQueue, buffer: Buffer) -> None:
    """Ask for pages of 2 MiB, before anything is written to a CPU's buffer of at least LARGE bytes.

    Normal pages are slow to allocate, and too many for the TLB if accesses are far apart, as in Fourier transforms
    across the planes of a mesh.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:  # no Linux
        return
    access = cl.map_flags.WRITE_INVALIDATE_REGION
    mapped = cl.enqueue_map_buffer(queue, buffer, access, 0, (buffer.size,), np.dtype(np.uint8))[0]
    start = -mapped.ctypes.data % PAGE
    address, size = ctypes.c_void_p(mapped.ctypes.data + start), ctypes.c_size_t(buffer.size - start)
    ctypes.CDLL(None).madvise(address, size, ctypes.c_int(advice))  # what it returns does not matter


class BufferBytes:
    """Count of the bytes of a device's buffers: `now`, and the `most` there were since `start`.

    Any thread may count. A finalizer may run at any place in any thread, within `count` as well. So it takes no lock:
    it leaves a note that the next reader takes in.
    """

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._released: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def now(self) -> int:
        """Bytes of the buffers there are."""
        with self._lock:
            return self._settled()

    def start(self) -> None:
        """Forget how many there were before."""
        with self._lock:
            self.most = self._settled()

    def count(self, owner: object, size: int) -> Callable[[], object]:
        """Count `size` bytes until their owner is deleted, or the function that is returned is called."""
        with self._lock:
            self._now = self._settled() + size
            self.most = max(self.most, self._now)
        end = weakref.finalize(owner, self._released.append, size)
        end.atexit = False
        return end

    def _settled(self) -> int:
        while self._released:
            self._now -= self._released.popleft()
        return self._now


class SpareBuffers:
    """Buffers that are not in use, left by a computation for the next one of its kind.

    A GPU's driver maps the memory of a new buffer when a command first uses it, and waits for all kernels to free it.
    Both take longer than a launch. Whoever takes buffers must use the command queues in which they were used before.
    """

    def __init__(self) -> None:
        # Finalizers leave buffers here at any place in any thread: without a lock.
        self._kinds: dict[str, tuple[int, dict[str, Buffer]]] = {}

    @property
    def now(self) -> int:
        """Bytes of all buffers."""
        return sum(size for size, _ in list(self._kinds.values()))

    def take(self, kind: str) -> dict[str, Buffer]:
        """Take the buffers of a kind, by their names."""
        return self._kinds.pop(kind, (0, {}))[1]

    def leave(self, kind: str, buffers: dict[str, Buffer], most: int) -> None:
        """Leave buffers of a kind in place of those there are. most : bytes; buffers that have more are freed"""
        size = sum(buffer.size for buffer in buffers.values())
        if size <= most:
            for buffer in buffers.values():
                buffer.counted()
            self._kinds[kind] = size, buffers

    def clear(self) -> None:
        """Free all buffers."""
        self._kinds.clear()


@dataclass(eq=False)
class ResultPages:
    """Memory of results.

    is_fresh : whether no earlier result used it; buffer : that registers it with the driver, or None
    """

    bytes: NDArray[np.uint8]
    is_fresh: bool = True
    buffer: Buffer | None = None


class Loan:
    """Owner of an array whose memory is reused; it is deleted with the last view of the array."""

    def __init__(self, pages: ResultPages, memory: ResultMemory) -> None:
        self.pages, self.memory, self.__array_interface__ = pages, memory, pages.bytes.__array_interface__


class ResultMemory:
    """Host memory of large results, reused when no array refers to it any more.

    The system allocates fresh memory page by page, which takes several times as long as a GPU takes to fill it.

    registered : bytes that are registered with the driver, which takes as many on the device
    """

    def __init__(self) -> None:
        self.registered = BufferBytes()
        # Finalizers put memory here at any place in any thread: without a lock, and beyond KEPT the oldest is dropped.
        self._free: deque[ResultPages] = deque(maxlen=KEPT)

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an uninitialized array."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if not LEAST_REUSED <= size <= MOST_REUSED:
            return np.empty(shape, kind)
        pages = self._taken(size) or ResultPages(np.empty(size, np.uint8))
        loan = Loan(pages, self)
        weakref.finalize(loan, self._take_back, pages).atexit = False
        found: NDArray[Any] = np.asarray(loan).view(kind).reshape(shape)
        return found

    def register(self, context: cl.Context, array: NDArray[Any]) -> Buffer | None:
        """Register the memory of an array with the driver, so that a GPU writes results there directly.

        This takes as long as two reads of unregistered memory, once, so memory that no earlier result used is left out.

        Returns the buffer that registers it, or None.
        """
        loan = _loan_of(array)
        if loan is None or loan.memory is not self or loan.pages.is_fresh:
            return None
        if loan.pages.buffer is None:
            flags, pages = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, loan.pages
            try:
                pages.buffer = Buffer(context, flags, hostbuf=pages.bytes)
            except cl.Error:  # the driver has no memory for it: results come through pinned pieces
                return None
            self.registered.count(pages.buffer, pages.bytes.nbytes)
        return loan.pages.buffer

    def has_registered(self, array: NDArray[Any]) -> bool:
        """Return whether the memory of an array is registered with the driver."""
        loan = _loan_of(array)
        return loan is not None and loan.memory is self and loan.pages.buffer is not None

    def clear(self) -> None:
        """Free all memory that is not in use."""
        self._free.clear()

    def _take_back(self, pages: ResultPages) -> None:
        pages.is_fresh = False
        self._free.append(pages)

    def _taken(self, size: int) -> ResultPages | None:
        for _ in range(len(self._free)):
            try:
                pages = self._free.popleft()
            except IndexError:  # another thread was faster
                return None
            if pages.bytes.nbytes == size:
                return pages
            self._free.append(pages)
        return None


def is_used(array: NDArray[Any]) -> bool:
    """Return whether the memory of an array was used by an earlier result, so that its pages exist."""
    loan = _loan_of(array)
    return loan is not None and not loan.pages.is_fresh


def _loan_of(array: NDArray[Any]) -> Loan | None:
    owner = array if array.base is None else array.base
    loan = getattr(owner, "base", None)
    return loan if isinstance(loan, Loan) else None
