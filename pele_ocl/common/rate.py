"""How fast a work goes on."""

from __future__ import annotations

import time


class Rate:
    """Frames a second. The first that are done do not count where at least as many follow, as kernels are
    compiled before them.

    first : how many times `add` is called for these, as of pieces that are computed at a time; 0 where all count
    """

    def __init__(self, first: int = 1) -> None:
        self._left = first
        self._start = self._compiled = self._last = (time.perf_counter(), 0.0)

    def earlier(self, done: float) -> None:
        """Count so many frames of an earlier run."""
        self._start = self._compiled = self._last = (self._start[0], done)

    def add(self, done: float) -> None:
        """Note that so many frames are done by now, with the frames of an earlier run."""
        self._last = time.perf_counter(), done
        self._left -= 1
        if self._left == 0:
            self._compiled = self._last

    def __call__(self) -> float:
        """Compute the frames per second until the last that were done."""
        first, later = self._compiled[1] - self._start[1], self._last[1] - self._compiled[1]
        since = self._compiled if later >= max(first, 1e-9) else self._start
        return (self._last[1] - since[1]) / max(self._last[0] - since[0], 1e-9)
