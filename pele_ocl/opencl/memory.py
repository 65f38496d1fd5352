"""Device buffers, and reuse of device and host memory."""

from __future__ import annotations

import ctypes
import math
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyopencl as cl
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 22  # minimum size of a buffer with large pages, bytes
PAGE = mmap.PAGESIZE

LEAST_REUSED, MOST_REUSED = 1 << 22, 1 << 27  # sizes of host memory blocks that are reused, bytes
KEPT = 4  # maximum number of unused blocks

CommandQueue = cl.CommandQueue


class Buffer(cl.Buffer):
    """Device buffer. This subclass exists because PyOpenCL's buffers do not support weak references.

    Parts of buffers, and buffers from a BufferPool, are PyOpenCL's own buffers with these attributes except `counted`.

    dtype : of its values; is_read_only : whether kernels may only read it; counted : function that ends the count of
        its bytes
    host : the buffer mapped as an array, if host and device share memory; not to be accessed while kernels run
    lease : of a buffer from a BufferPool
    """

    dtype: np.dtype[Any]
    is_read_only: bool
    counted: Callable[[], object]
    host: NDArray[Any] | None = None
    lease: Lease | None = None


def shares_memory(buffer: Buffer, array: NDArray[Any]) -> bool:
    """Return whether an array shares memory with a buffer."""
    return buffer.host is not None and np.may_share_memory(buffer.host, array)


def part_of(buffer: Buffer, first: int, size: int) -> Buffer:
    """Return `size` bytes of a buffer, starting at byte `first`, as a sub-buffer, which keeps the memory in use."""
    part: Any = buffer.get_sub_region(first, size)
    part.dtype, part.is_read_only, part.host, part.lease = buffer.dtype, buffer.is_read_only, None, buffer.lease
    found: Buffer = part
    return found


def map_whole(queue: CommandQueue, buffer: Buffer) -> NDArray[Any]:
    """Map a buffer after all earlier commands. The buffer stays mapped until the array is deleted."""
    access: Any = cl.map_flags.READ | cl.map_flags.WRITE
    shape = (buffer.size // buffer.dtype.itemsize,)
    array: NDArray[Any] = cl.enqueue_map_buffer(queue, buffer, access, 0, shape, buffer.dtype)[0]
    return array


def ask_for_large_pages(queue: CommandQueue, buffer: Buffer) -> None:
    """Request 2 MiB pages for a CPU buffer of at least LARGE bytes; must be called before the first write.

    With normal pages, allocation is slow, and strided access, as in Fourier transforms across the planes of a mesh,
    causes many TLB misses.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:  # not Linux
        return
    access = cl.map_flags.WRITE_INVALIDATE_REGION
    mapped = cl.enqueue_map_buffer(queue, buffer, access, 0, (buffer.size,), np.dtype(np.uint8))[0]
    start = -mapped.ctypes.data % PAGE
    address, size = ctypes.c_void_p(mapped.ctypes.data + start), ctypes.c_size_t(buffer.size - start)
    ctypes.CDLL(None).madvise(address, size, ctypes.c_int(advice))  # errors are ignored: this is only a hint


class BufferBytes:
    """Count of allocated bytes: `now`, and the maximum `most` since `start`.

    Any thread may count. Finalizers can run at any point, even within `count`, so they take no lock: they append to a
    queue that the next reader processes.
    """

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._released: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def now(self) -> int:
        """Bytes currently allocated."""
        with self._lock:
            return self._settled()

    def start(self) -> None:
        """Reset the maximum to the current value."""
        with self._lock:
            self.most = self._settled()

    def count(self, owner: object, size: int) -> Callable[[], object]:
        """Count `size` bytes until `owner` is deleted or the returned function is called."""
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
    """Unused buffers, kept for the next computation of the same kind.

    A GPU driver maps the memory of a new buffer on first use, and waits for all kernels before it frees a buffer. Both
    take longer than a launch. Buffers must be reused in the command queues in which they were used before.
    """

    def __init__(self) -> None:
        # No lock, because finalizers may call `leave` at any point in any thread.
        self._kinds: dict[str, dict[str, Buffer]] = {}

    @property
    def now(self) -> int:
        """Total bytes of the unused buffers."""
        return sum(buffer.size for buffers in list(self._kinds.values()) for buffer in list(buffers.values()))

    def take(self, kind: str, name: str) -> Buffer | None:
        """Remove and return a buffer; None if there is none with this name."""
        return self._kinds.get(kind, {}).pop(name, None)

    def leave(self, kind: str, buffers: dict[str, Buffer], most: int) -> None:
        """Store buffers in place of earlier ones of their kind. most : bytes; larger sets are freed"""
        if sum(buffer.size for buffer in buffers.values()) <= most:
            for buffer in buffers.values():
                buffer.counted()
            self._kinds[kind] = buffers

    def clear(self) -> None:
        """Free all buffers."""
        self._kinds.clear()


class Lease:
    """Attribute of a buffer, deleted with it; PyOpenCL's buffers do not support weak references."""


class BufferPool:
    """Buffers of one command queue. The memory of a buffer that is deleted is reused for a later one.

    Sizes are rounded up, so that lists of similar lengths can use the same memory.
    """

    def __init__(self) -> None:
        # No lock, because finalizers may append at any point in any thread.
        self._unused: dict[int, deque[Buffer]] = {}

    def take(self, size: int, create: Callable[[int], Buffer]) -> Buffer:
        """Return an uninitialized buffer of at least `size` bytes. create : creates a buffer by size"""
        step = max(64, 1 << max(0, size.bit_length() - 4))  # at most an eighth of large sizes
        rounded = -(-size // step) * step
        for enough in (rounded, rounded + step, rounded + 2 * step):
            try:
                whole = self._unused[enough].pop()
                break
            except (KeyError, IndexError):
                continue
        else:
            whole = create(rounded)
        lease, found = Lease(), cast(Buffer, Buffer.from_int_ptr(whole.int_ptr))
        weakref.finalize(lease, self._unused.setdefault(whole.size, deque()).append, whole).atexit = False
        found.host, found.lease = None, lease
        return found

    def clear(self) -> None:
        """Free all unused memory."""
        for buffers in list(self._unused.values()):
            buffers.clear()


@dataclass(eq=False)
class ResultPages:
    """Memory block for results.

    is_fresh : whether no earlier result used it; buffer : registers the block with the driver; None if not registered
    """

    bytes: NDArray[np.uint8]
    is_fresh: bool = True
    buffer: Buffer | None = None


class Loan:
    """Owner of an array in reused memory, deleted with the last view of the array."""

    def __init__(self, pages: ResultPages, memory: ResultMemory) -> None:
        self.pages, self.memory, self.__array_interface__ = pages, memory, pages.bytes.__array_interface__


class ResultMemory:
    """Host memory for large results, reused when no array refers to it.

    The operating system allocates new memory page by page, which takes several times as long as a transfer from a GPU.

    registered : bytes registered with the driver, which uses as much device memory
    """

    def __init__(self) -> None:
        self.registered = BufferBytes()
        # No lock, because finalizers may append at any point in any thread. The oldest blocks beyond KEPT are dropped.
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
        """Register the memory of an array with the driver, so that a GPU can write results to it directly.

        Registration takes as long as two reads to unregistered memory, so memory is only registered when it is reused.

        Returns the registered buffer, or None.
        """
        loan = _loan_of(array)
        if loan is None or loan.memory is not self or loan.pages.is_fresh:
            return None
        if loan.pages.buffer is None:
            flags, pages = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, loan.pages
            try:
                pages.buffer = Buffer(context, flags, hostbuf=pages.bytes)
            except cl.Error:  # out of memory: results are transferred through pinned memory
                return None
            self.registered.count(pages.buffer, pages.bytes.nbytes)
        return loan.pages.buffer

    def has_registered(self, array: NDArray[Any]) -> bool:
        """Return whether the memory of an array is registered with the driver."""
        loan = _loan_of(array)
        return loan is not None and loan.memory is self and loan.pages.buffer is not None

    def clear(self) -> None:
        """Free all unused memory."""
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
    """Return whether an earlier result used the memory of an array, so that its pages are allocated."""
    loan = _loan_of(array)
    return loan is not None and not loan.pages.is_fresh


def _loan_of(array: NDArray[Any]) -> Loan | None:
    owner = array if array.base is None else array.base
    loan = getattr(owner, "base", None)
    return loan if isinstance(loan, Loan) else None
