"""Work of a map, cut to fit the devices: slabs of slices, chunks of atoms, one thread a device.

Its cuts never change a bit of the result, as each point adds whole runs of atoms in their order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..common.variant import Progress
from .problem import RUN, MapProblem
from .variants import SlabMethod

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Queue

# Launches aim at this length, so that the work can be interrupted and tell how far it is.
LAUNCH_SECONDS = 0.5
MOST_POINTS = 1 << 28  # of a slab on a device, padding and field included
MEMORY_SHARE = 4  # a slab takes at most this part of a device's memory


def first_evals(device: Device) -> float:
    """Evaluations in the first launch. A GPU's unit does 1 to 20 of them a clock: a launch of 0.1 to 1.5 seconds."""
    return 1.5 * device.compute_units * device.clock if device.kind == "GPU" else 3e8


def evaluations_per_second(device: Device) -> float:
    """Estimate the rate of the direct sum.

    A unit of a GPU does 4 in a clock, a core of a CPU with vectors of eight 2.
    """
    return (4.0 if device.kind == "GPU" else 2.2) * device.compute_units * device.clock


class RemainingSlabs:
    """Slices of a problem that are still to be done, and the map they are written to; shared by the threads.

    squares : (components, nz) sums of the squares of each slice, of variants that approximate
    meanwhile : what is wanted besides, which the first worker does whose device computes

    Each worker begins with an equal share of the slices, so that like devices end together. One that has done its own
    takes half of the slowest one's rest.
    """

    def __init__(
        self, problem: MapProblem, progress: Progress | None, workers: int = 1,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.progress, self._meanwhile = problem, progress, meanwhile
        self.values = np.empty((problem.components, *problem.grid.shape[::-1]), problem.precision)
        self.squares = np.zeros((problem.components, problem.grid.shape[2]))
        self.stopped = False
        self._making: list[Future[None]] = []
        self._lock = threading.Lock()
        self._done = 0.0
        bounds = [problem.grid.shape[2] * worker // workers for worker in range(workers + 1)]
        self._left = [range(*pair) for pair in pairwise(bounds)]

    def take(self, worker: int, depth: int, block: int = 1) -> tuple[int, int] | None:
        """First and last + 1 of the next slices for this worker; None where nothing is left.

        It takes at most `depth`, in whole blocks. The rest of its share falls into equal parts. A short last launch
        would leave most of a device idle.
        """
        with self._lock:
            if not self._left[worker]:
                slowest = max(range(len(self._left)), key=lambda other: len(self._left[other]))
                rest = self._left[slowest]
                middle = len(rest) // 2
                self._left[slowest], self._left[worker] = rest[:middle], rest[middle:]
            own = self._left[worker]
            parts = max(1, -(-len(own) // depth))
            count = -(-len(own) // (parts * block)) * block
            slices, self._left[worker] = own[:count], own[count:]
        return (slices.start, slices.stop) if slices and not self.stopped else None

    def start(self) -> None:
        """Make the memory of the values, while others are at work."""
        from ..opencl.staging import start_making

        self._making = start_making(self.values)

    def slices(self, first: int, last: int) -> NDArray[np.floating]:
        """Return the values (components, slices, ny, nx) of some slices, to be written to."""
        for part in self._making:
            part.result()
        return self.values[:, first:last]

    def do_meanwhile(self, launch: Queue) -> None:
        """Do what is wanted besides while a device computes; the first worker that comes does it."""
        with self._lock:
            work, self._meanwhile = self._meanwhile, None
        if work is not None:
            launch.submit()
            work()

    def note(self, slices: int, n_atoms: int) -> None:
        """Note that so many atoms have been added to so many slices."""
        with self._lock:
            self._done += slices / self.problem.grid.shape[2] * (n_atoms / self.problem.n_atoms)
            if self.progress is not None:
                self.progress(min(self._done, 1.0))


def slab_depth(device: Device, problem: MapProblem, evals: float, method: SlabMethod) -> int:
    """Slices of the next slab: as many as one launch and the device's memory allow, whole blocks of them."""
    pad, atoms_a_point = method.pad, method.atoms_a_point or problem.n_atoms
    nx, ny = (-(-n // p) * p for n, p in zip(problem.grid.shape[:2], pad[:2], strict=True))
    largest = min(device.largest_buffer, device.memory // MEMORY_SHARE) // np.dtype(problem.precision).itemsize
    points = min(evals / atoms_a_point, largest / problem.components, MOST_POINTS / problem.components)
    return max(1, int(points / (nx * ny)) // pad[2]) * pad[2]


def atoms_a_launch(n_points: int, evals: float) -> int:
    """Atoms of a launch of direct sums, whole runs of them."""
    return max(1, int(evals / n_points) // RUN) * RUN
