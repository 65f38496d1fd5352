"""Map that is ready on its devices: for a single map and for frames, one set of positions after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..common.variant import Progress
from .corrections import correct
from .map_slab import MapSlab
from .methods import MAP_METHODS
from .problem import MapProblem
from .slabs import LAUNCH_SECONDS, RemainingSlabs, atoms_a_launch, first_evals, slab_depth
from .variants import MapVariant

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Queue


@dataclass(frozen=True, eq=False)
class Summed:
    """Values (components, nz, ny, nx) of a map.

    seconds : of the kernels on the device that was busy longest
    squares : sums of the squared potentials and, if it is computed, of the squared field, of a variant that
        approximates; else None
    """

    values: NDArray[np.floating]
    seconds: float
    squares: tuple[float, ...] | None = None


class DeviceMap:
    """Kernels, tables and memory of a map on one device, kept from one set of positions to the next.

    problem : at the positions of the last `move`
    evals : evaluations of a launch that lasts about LAUNCH_SECONDS, as far as launches have shown
    """

    def __init__(self, problem: MapProblem, variant: MapVariant, device: Device) -> None:
        self.device, self.problem, self.evals = device, problem, first_evals(device)
        self._variant = variant
        self._corrected = MAP_METHODS[self._variant.method].is_corrected(problem.precision)
        self._setup = self.queue()
        self.method = self._variant.run(self._setup, problem)
        self._slab: MapSlab | None = None

    def queue(self) -> Queue:
        """Begin a queue of launches on the device."""
        from ..opencl.queue import Queue

        return Queue(self.device, self.problem.precision)

    def move(self, queue: Queue, problem: MapProblem) -> None:
        """Take the same atoms at other positions; tables that still fit are kept."""
        if problem is not self.problem:
            self.method = (self.method.moved or self._variant.run)(queue, problem)
            self.problem = problem

    def slab(self, queue: Queue, first: int, last: int) -> MapSlab:
        """Slices `first` to `last` - 1, all zero; the memory of the last slab serves if it has the same slices."""
        kept = self._slab
        if kept is not None and (kept.first, kept.last) == (first, last):
            queue.clear(kept.map)
            return replace(kept, problem=self.problem)
        self._slab = kept = None  # frees its memory before more is taken
        self._slab = MapSlab.on(queue, self.problem, first, last, self.method.pad)
        return self._slab

    def add(self, queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        """Launch the addition of atoms `first` to `last` - 1, and after the last atom the corrections near atoms."""
        self.method.add(queue, slab, first, last)
        if last == self.problem.n_atoms and self._corrected:
            queue.submit()  # the host prepares what comes next
            correct(queue, slab)

    def atoms_a_launch(self, slab: MapSlab) -> int:
        """Atoms of the next launch: all for methods that need all at once."""
        if self.method.atoms_a_point is not None:
            return max(1, self.problem.n_atoms)
        return atoms_a_launch(slab.n_points, self.evals)

    def compute(self, work: RemainingSlabs, worker: int) -> float:
        """Compute this device's share of a map, slab by slab; gives the seconds of its kernels."""
        problem, seconds = work.problem, 0.0
        self.move(self._setup, problem)
        while (slices := work.take(worker, self._depth(), self.method.pad[2])) is not None:
            first, last = slices
            queue = self.queue()
            slab = self.slab(queue, first, last)
            done = 0
            while done < problem.n_atoms and not work.stopped:
                count = min(problem.n_atoms - done, self.atoms_a_launch(slab))
                launch = self.queue()
                self.add(launch, slab, done, done + count)
                work.do_meanwhile(launch)
                took = launch.kernel_seconds
                seconds += took
                done += count
                work.note(last - first, count)
                evals = slab.n_points * (self.method.atoms_a_point or count)
                self.evals = evals * min(8.0, LAUNCH_SECONDS / max(took, 1e-6))
            if self._variant.approximates:
                work.squares[:, first:last] = slab.squares(queue)
            slab.download(queue, work.slices(first, last))
        setup, self._setup = self._setup, self.queue()
        return seconds + setup.kernel_seconds

    def _depth(self) -> int:
        return slab_depth(self.device, self.problem, self.evals, self.method)


class MapPlan:
    """A map of one molecule on one grid, shared by devices.

    problem : at the positions of the last map
    wanted : accuracy by norm of the first problem, for methods that have one
    """

    def __init__(self, problem: MapProblem, variant: MapVariant, devices: Sequence[Device]) -> None:
        self.problem, self.variant, self.wanted = problem, variant, problem.accuracy
        self.devices = list(devices)
        self._parts: dict[int, DeviceMap] = {}

    def __reduce__(self) -> tuple[Callable[..., MapPlan], tuple[object, ...]]:
        """Pickle by description: devices by their titles, kernels and memory made again."""
        return MapPlan, (self.problem, self.variant, self.devices)

    def part(self, number: int) -> DeviceMap:
        """Kernels, tables and memory on one of the devices, made at the first use."""
        if number not in self._parts:
            self._parts[number] = DeviceMap(self.problem, self.variant, self.devices[number])
        return self._parts[number]

    def refine(self, accuracy: float) -> None:
        """Take a finer mesh or finer lattices from now on; the memory of the coarser ones is freed."""
        self._parts.clear()
        self.problem = replace(self.problem, accuracy=accuracy)

    def compute(
        self, problem: MapProblem | None = None, progress: Progress | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Summed:  # fmt: skip
        """Compute the map.

        problem : of the same atoms at other positions; progress : called with the share done, 0 to 1
        meanwhile : done by the host while a device computes, if the variant approximates
        """
        self.problem = problem or self.problem
        approximates = self.variant.approximates
        work = RemainingSlabs(self.problem, progress, len(self.devices), meanwhile if approximates else None)
        if self.problem.n_atoms == 0:
            return Summed(np.zeros_like(work.values), 0.0)
        seconds = self._shared(work)
        if not approximates:
            return Summed(work.values, seconds)
        squares = work.squares.sum(axis=1)
        parts = (squares[:1], squares[1:])[: 2 if self.problem.field else 1]
        return Summed(work.values, seconds, tuple(float(part.sum()) for part in parts))

    def _shared(self, work: RemainingSlabs) -> float:
        """Let the devices do the work; the seconds of the one that was busy longest."""
        if all(device.kind != "CPU" for device in self.devices):
            work.start()
        if len(self.devices) == 1:
            return self.part(0).compute(work, 0)

        def share(number: int) -> float:
            try:
                return self.part(number).compute(work, number)
            except BaseException:
                work.stopped = True  # for the other devices, too
                raise

        with ThreadPoolExecutor(len(self.devices)) as pool:
            try:
                return max(pool.map(share, range(len(self.devices))))
            finally:
                work.stopped = True  # if the wait was interrupted
