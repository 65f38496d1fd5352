"""Store of rows: one large buffer of a device with what molecules share and what rows have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...opencl.queue import Queue
    from ...opencl.recording import Recorder

Gaps = list[tuple[int, int]]  # begin and end of the free parts of a buffer, in order


class Store:
    """Regions of one large buffer: of molecules, as long as there is room, and of rows.

    shared : first bytes of what the rows of a molecule share, by its recorder
    rewrites : how often buffers of terms were written
    """

    def __init__(self, queue: Queue, size: int) -> None:
        """queue : writes what rows of a molecule share"""
        self.buffer, self.size, self.shared = queue.empty(size, np.uint8), size, dict["Recorder", int]()
        self.rewrites = 0
        self._queue = queue
        self._gaps: Gaps = [(0, size)]
        self._users = Counter["Recorder"]()
        self._rows: dict[Recorder, list[int]] = {}

    def take(self, recorder: Recorder) -> int | None:
        """Take a region for a row, and one for its molecule if that has none; None if there is no room."""
        own = self._taken(recorder)
        if own is None and not any(self._users.values()):  # what is free is in parts that are too small
            self._drop(self.shared)
            own = self._taken(recorder)
        if own is not None:
            self._users[recorder] += 1
            self._rows.setdefault(recorder, []).append(own)
        return own

    def give_back(self, recorder: Recorder, first: int) -> None:
        """Free the region of a row; its molecule keeps its own until there is no room."""
        give_gap_back(self._gaps, first, recorder.own.size)
        self._users[recorder] -= 1
        self._rows[recorder].remove(first)

    def rewrite(self, recorder: Recorder, is_shared: bool, first: int, data: NDArray[np.uint8]) -> None:
        """Write bytes to what the rows of a molecule share, or to what each of them has."""
        begins = [self.shared[recorder]] if is_shared and recorder in self.shared else []
        for begin in begins if is_shared else self._rows.get(recorder, ()):
            self._queue.write(self.buffer, data, begin + first)
        self.rewrites += 1

    def share(self, recorder: Recorder) -> bool:
        """Place what the rows of a molecule share; give False if there is no room."""
        first = self._first(recorder.shared.size, recorder)
        if first is None:
            return False
        self.shared[recorder] = first
        recorder.homes.add(self)
        if len(recorder.shared.image):
            self._queue.write(self.buffer, recorder.shared.image, first)
        return True

    def _taken(self, recorder: Recorder) -> int | None:
        if recorder not in self.shared:
            # Molecules of calls before go first: later their bytes would be gaps, too small for the last row.
            self._drop([other for other in self.shared if not self._users[other]])
            if not self.share(recorder):
                return None
        return self._first(recorder.own.size, recorder)

    def _first(self, size: int, recorder: Recorder) -> int | None:
        """Take so many bytes, if need be from molecules without rows, but for one."""
        first = take_gap(self._gaps, size) if size else 0
        if first is None:
            self._drop([other for other in self.shared if other is not recorder and not self._users[other]])
            first = take_gap(self._gaps, size)
        return first

    def _drop(self, recorders: Iterable[Recorder]) -> None:
        for recorder in list(recorders):
            first = self.shared.pop(recorder)
            if recorder.shared.size:
                give_gap_back(self._gaps, first, recorder.shared.size)


def take_gap(gaps: Gaps, size: int) -> int | None:
    """Take bytes of the first gap that is large enough. Returns the first one; None if no gap is."""
    for k, (begin, end) in enumerate(gaps):
        if end - begin >= size:
            gaps[k : k + 1] = [(begin + size, end)] if end - begin > size else []
            return begin
    return None


def give_gap_back(gaps: Gaps, first: int, size: int) -> None:
    """Free bytes that were taken, and join them with adjacent gaps."""
    joined: Gaps = []
    for begin, end in sorted([*gaps, (first, first + size)]):
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    gaps[:] = joined
