"""Memory on a device."""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import pyopencl as cl

LARGE = 1 << 22  # bytes of a buffer that has large pages
PAGE = mmap.PAGESIZE

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
