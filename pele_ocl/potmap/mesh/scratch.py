"""Memory of a device that steps of a mesh use one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue


class Scratch:
    """Uninitialised buffers by name, kept for further steps and frames: launches on a device follow one another."""

    def __init__(self) -> None:
        self._buffers: dict[str, Buffer] = {}

    def __call__(self, queue: Queue, name: str, n: int) -> Buffer:
        """A buffer of at least n reals; what the last step left under the name is lost."""
        kept = self._buffers.get(name)
        if kept is not None and kept.size >= n * queue.dtype.itemsize:
            return kept
        del kept
        self._buffers.pop(name, None)  # before the larger one is made
        self._buffers[name] = queue.empty(n)
        return self._buffers[name]
