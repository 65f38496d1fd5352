"""Map that is ready on its devices, for a single map and for frames, and as accurate as asked for.

If the measured error is too large, further tries follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.threads import started
from ..common.variant import Progress
from ..grid import Map
from .corrections import correct
from .error import MapError, Sample
from .mesh import mesh_evaluations, table_waves
from .methods import MAP_METHODS, SPLIT_METHODS, finer_accuracy
from .options import MapOptions, medium_facts
from .problem import MapProblem
from .result import PotmapResult
from .slabs import (
    LAUNCH_SECONDS,
    MapSlab,
    RemainingSlabs,
    atoms_a_launch,
    evaluations_per_second,
    first_evals,
    slab_depth,
)
from .variants import MapVariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..opencl.device import Device
    from ..opencl.queue import Queue

DEFAULT_ACCURACY = 1e-4
# Seconds of the host beside the kernels (measured): of a map by the mesh, and of a wave number of its table.
MESH_SECONDS, WAVE_SECONDS = 0.02, 45e-9
FINER_TRIES = 2  # of a map that no atom stands in


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


@dataclass(eq=False)
class MapPlan:
    """A map of one molecule on one grid: by which method, on which devices, and what is ready on them.

    problem : at the positions of the last map; options : as given; method : key of MAP_METHODS
    name : of the variant, never "auto", which is `variant`; devices : that share the work
    title : of maps; factor : the potential of a unit charge 1 A away, in the options' unit, without salt
    wanted : accuracy by norm of the first problem, for methods that have one
    """

    problem: MapProblem
    options: MapOptions
    method: str
    name: str
    variant: MapVariant
    devices: list[Device]
    title: str
    factor: float
    wanted: float = field(init=False)
    _parts: dict[int, DeviceMap] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.wanted = self.problem.accuracy if self.method in SPLIT_METHODS else 0.0

    @property
    def device(self) -> str:
        """Names of the devices."""
        return " + ".join(map(str, self.devices))

    def map_of(self, values: NDArray[np.floating], what: str = "") -> Map:
        """Values (nz, ny, nx) as a Map; what : put before the title"""
        unit = self.options.unit
        kelvin = self.options.temperature if unit == "kT/e" else None
        return Map.owning(self.problem.grid, values, unit, what + self.title, kelvin)

    def result(
        self, atoms: Atoms, map_: Map, seconds: Mapping[str, float], errors: Sequence[MapError | None] = (),
        field: NDArray[np.floating] | None = None, **more: Any,
    ) -> PotmapResult:  # fmt: skip
        """Make the result of a map. errors : of the potential and of the field; more : further fields of it"""
        potential_error, field_error = (*errors, None, None)[:2]
        approximates = bool(errors) and self.method in SPLIT_METHODS
        return PotmapResult(
            map=map_,
            field=field,
            n_atoms=len(atoms),
            device=self.device,
            variant=self.name,
            precision=self.problem.precision,
            seconds=seconds,
            method=self.method,
            error=potential_error,
            field_error=field_error,
            accuracy=self.problem.accuracy if approximates else 0.0,
            wanted=self.wanted if approximates else 0.0,
            atoms=atoms,
            model=self.problem.model,
            settings=medium_facts(atoms, self.options),
            **more,
        )

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
        meanwhile: Callable[[], object] | None = None,
    ) -> RemainingSlabs:  # fmt: skip
        """Compute the map, which is in `values` of what is returned.

        problem : of the same atoms at other positions; progress : called with the fraction done, 0 to 1
        meanwhile : done by the host while a device computes, if the variant approximates
        """
        self.problem = problem or self.problem
        approximates = self.variant.approximates
        work = RemainingSlabs(
            self.problem, progress, self.devices[0].results, len(self.devices), meanwhile if approximates else None
        )
        if self.problem.n_atoms == 0:
            work.values[:] = 0
        else:
            work.seconds = self._shared(work)
        return work

    def compute_accurately(
        self, problem: MapProblem | None = None, progress: Progress | None = None
    ) -> tuple[NDArray[np.floating], float, tuple[MapError, ...]]:
        """Compute a map; a mesh or lattices that miss their accuracy are followed by the next finer ones.

        problem : of the same atoms at other positions. The plan keeps what was taken in the end.

        Returns the values (components, nz, ny, nx), the seconds of the kernels on the device that was busy longest, and
        the errors of the potential and of the field, as far as it is computed; none of direct sums.
        """
        seconds = 0.0
        self.problem = problem or self.problem
        sample = self._begin_sample()
        while True:
            work = self.compute(progress=progress, meanwhile=sample)
            seconds += work.seconds
            if not self.variant.approximates or not self.problem.n_atoms:
                return work.values, seconds, ()
            errors = sample().errors(work.values, work.sums_of_squares)
            missed = any(error.norm > self.wanted for error in errors)
            finer = finer_accuracy(self.method, self.problem) if missed else None
            if finer is None:
                return work.values, seconds, errors
            self.refine(finer)

    def _begin_sample(self) -> Callable[[], Sample]:
        """Give what waits for the sums at a sample of points; beside a GPU a thread begins with those of many atoms."""
        problem, device = self.problem, self.devices[0]

        def begin() -> Sample:
            return Sample(problem, device)

        if self.variant.approximates and device.kind == "GPU":
            begin = started(problem.n_atoms, begin)
        return cache(begin)

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


def method_for(problem: MapProblem, devices: Sequence[Device]) -> str:
    """Choose the method that takes least time on the devices, by rule, "direct" or "mesh"."""
    if SPLIT_METHODS["mesh"].lacks(problem) or not problem.n_atoms:
        return "direct"
    rate = sum(map(evaluations_per_second, devices))
    mesh = sum(
        mesh_evaluations(each) / rate + WAVE_SECONDS * table_waves(each) + MESH_SECONDS for each in _tries(problem)
    )
    return "mesh" if mesh < problem.evaluations * problem.components / rate else "direct"


def _tries(problem: MapProblem) -> Iterator[MapProblem]:
    """Yield the problem with each accuracy that may be tried, one after another.

    Beside a molecule its parts cancel, and the error is a larger part of the rest. So finer meshes are likely to
    follow.
    """
    yield problem
    for _ in range(0 if problem.n_near else FINER_TRIES):
        finer = finer_accuracy("mesh", problem)
        if finer is None:
            return
        problem = replace(problem, accuracy=finer)
        yield problem
