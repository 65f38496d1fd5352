"""The bytes that live on a device."""

from __future__ import annotations

import threading
import weakref
from collections import deque

import pyopencl as cl

Queue = cl.CommandQueue


class Buffer(cl.Buffer):
    """Memory of a device. PyOpenCL's own buffers take no weak references, so they cannot be counted."""


class BufferBytes:
    """The bytes of all buffers of a device: `now`, and the `most` there were since `start`.

    Any thread may count. A finalizer may run at any place in any thread, within `count` as well, so it takes no lock:
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
