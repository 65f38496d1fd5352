"""Memory on a device."""

from __future__ import annotations

import ctypes
import math
import mmap
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 22  # bytes of a buffer that has large pages
PAGE = mmap.PAGESIZE

LEAST_REUSED, MOST_REUSED = 1 << 22, 1 << 27  # bytes of host memory of a result that is used again
KEPT = 4  # pieces of such memory that nobody has at the moment

CommandQueue = cl.CommandQueue


class Buffer(cl.Buffer):
    """Memory of a device. PyOpenCL's own buffers take no weak references, so they cannot be counted.

    dtype : of its values; is_read_only : if kernels may only read it
    """

    dtype: np.dtype[Any]
    is_read_only: bool


def part_of(buffer: Buffer, first: int, size: int) -> Buffer:
    """Return `size` bytes of a buffer, from byte `first` on, as a buffer."""
    part: Any = buffer.get_sub_region(first, size)
    part.dtype, part.is_read_only = buffer.dtype, buffer.is_read_only
    found: Buffer = part
    return found


def ask_for_large_pages(queue: CommandQueue, buffer: Buffer) -> None:
    """Ask for pages of 2 MiB, before anything is written to a CPU's buffer of at least LARGE bytes.

    Usual pages take a while to make. They are also too many for the processor's table if numbers lie far apart. Fourier
    transforms across the planes of a mesh meet such.
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

    def count(self, owner: object, size: int) -> None:
        """Count `size` bytes until their owner is gone."""
        with self._lock:
            self._now = self._settled() + size
            self.most = max(self.most, self._now)
        weakref.finalize(owner, self._released.append, size).atexit = False

    def _settled(self) -> int:
        while self._released:
            self._now -= self._released.popleft()
        return self._now


class Loan:
    """Owner of an array whose memory is lent: it is gone when the last view of the array is."""

    def __init__(self, memory: NDArray[Any]) -> None:
        self.__array_interface__ = memory.__array_interface__


class ResultMemory:
    """Host memory of large results, used again once nobody has an array of it any more.

    The system makes fresh memory page by page, which takes several times as long as a GPU takes to fill it.
    """

    def __init__(self) -> None:
        # Finalizers put memory here at any place in any thread: without a lock, and beyond KEPT the oldest is dropped.
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=KEPT)

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> tuple[NDArray[Any], bool]:
        """Give an array that is to be filled, and whether its memory is fresh."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if not LEAST_REUSED <= size <= MOST_REUSED:
            return np.empty(shape, kind), True
        memory = self._taken(size)
        lent = np.empty(size, np.uint8) if memory is None else memory
        loan = Loan(lent)
        weakref.finalize(loan, self._free.append, lent).atexit = False
        return np.asarray(loan).view(kind).reshape(shape), memory is None

    def clear(self) -> None:
        """Drop all that nobody has."""
        self._free.clear()

    def _taken(self, size: int) -> NDArray[np.uint8] | None:
        for _ in range(len(self._free)):
            try:
                memory = self._free.popleft()
            except IndexError:  # another thread was faster
                return None
            if memory.nbytes == size:
                return memory
            self._free.append(memory)
        return None
