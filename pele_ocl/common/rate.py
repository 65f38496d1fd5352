"""Measurement of throughput."""

from __future__ import annotations

import time


class Rate:
    """Frames per second. The first frames, which include compilation, are ignored if at least as many follow.

    first : number of calls of `add` to ignore; 0 to include all
    """

    def __init__(self, first: int = 1) -> None:
        self._left = first
        self._start = self._compiled = self._last = (time.perf_counter(), 0.0)

    def earlier(self, done: float) -> None:
        """Set the number of frames done in an earlier run."""
        self._start = self._compiled = self._last = (self._start[0], done)

    def add(self, done: float) -> None:
        """Set the total number of frames done so far, including an earlier run."""
        self._last = time.perf_counter(), done
        self._left -= 1
        if self._left == 0:
            self._compiled = self._last

    def __call__(self) -> float:
        """Return the frames per second up to the last call of `add`."""
        first, later = self._compiled[1] - self._start[1], self._last[1] - self._compiled[1]
        since = self._compiled if later >= max(first, 1e-9) else self._start
        return (self._last[1] - since[1]) / max(self._last[0] - since[0], 1e-9)
