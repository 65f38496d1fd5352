"""Slices of a map on one device, for one frame of a molecule after the other."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..plan import DeviceMap
from ..problem import MapProblem
from ..slabs import MapSlab

if TYPE_CHECKING:
    from ...opencl.queue import Queue

AHEAD = 2  # frames that are launched before the first of them is waited for


class FrameSlab:
    """Slices `first` to `last` - 1 of a map, computed by one device for frame after frame.

    A frame is launched and not waited for, so that the host prepares the next one while the device computes.

    slab : its map is the last launched frame's
    seconds : of the kernels of the frames that were waited for
    """

    def __init__(self, part: DeviceMap, first: int, last: int) -> None:
        self.part, self.seconds = part, 0.0
        self.slab = part.slab(part.queue(), first, last)
        self._under_way: deque[Queue] = deque()

    def start(self, problem: MapProblem) -> Queue:
        """Launch the map of these atoms at the positions of this problem; further launches may follow in the queue."""
        if len(self._under_way) == AHEAD:
            self._wait()
        queue = self.part.queue()
        self.part.move(queue, problem)
        self.slab = slab = self.part.slab(queue, self.slab.first, self.slab.last)
        step = self.part.atoms_a_launch(slab)
        for atom in range(0, problem.n_atoms, step):
            self.part.add(queue, slab, atom, min(atom + step, problem.n_atoms))
        queue.submit()
        self._under_way.append(queue)
        return queue

    def finish(self) -> None:
        """Wait for all frames."""
        while self._under_way:
            self._wait()

    def values(self) -> NDArray[np.floating]:
        """Read the map of the last frame, (slices, ny, nx)."""
        return self.downloaded(self.slab)

    def downloaded(self, slab: MapSlab) -> NDArray[np.floating]:
        """Read the values (slices, ny, nx) of a slab like `slab`."""
        nx, ny, _ = slab.problem.grid.shape
        values = np.empty((1, slab.last - slab.first, ny, nx), slab.problem.precision)
        slab.download(self.part.queue(), values)
        found: NDArray[np.floating] = values[0]
        return found

    def places(self, points: NDArray[np.int64]) -> NDArray[np.int32]:
        """Find the places in its map of points (n, 3) of the grid, all of the slab."""
        nx, ny, _ = self.slab.shape
        found: NDArray[np.int64] = ((points[:, 2] - self.slab.first) * ny + points[:, 1]) * nx + points[:, 0]
        return found.astype(np.int32)

    def owns(self, points: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which points (n, 3) of the grid belong to the slab."""
        z = points[:, 2]
        return (z >= self.slab.first) & (z < self.slab.last)

    def _wait(self) -> None:
        """Wait for the first frame under way, and take the time of its kernels."""
        from ...opencl.timing import seconds_of

        queue = self._under_way.popleft()
        if queue.events:
            queue.wait(queue.events[-1])
        self.seconds += sum(map(seconds_of, queue.events), 0.0)
