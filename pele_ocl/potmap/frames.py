"""Maps of one molecule over many frames: mean, standard deviation and extremes at every point, in constant memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common import arguments
from ..common.errors import InputError
from ..grid import Grid
from .error import SEED, MapError, exact_values, measured, sampled_points, sum_of_squares
from .methods import MAP_METHODS, SPLIT_METHODS, require_able
from .options import MapOptions
from .plan import DeviceMap, planned
from .problem import MapProblem, require_apart
from .result import COMBINATIONS, PotmapResult
from .slabs import MapSlab, first_evals

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue


AHEAD = 2  # frames launched before waiting for the first
GROUP = 64
# Number of points compared with direct sums: for the first frame, and limits for other frames.
FIRST_POINTS, MOST_POINTS, FEWEST_POINTS = 1000, 16, 4
EVALUATIONS = 50_000  # evaluations of these sums per frame, which take 0.5 ms on the host
MARGIN = 3.0  # A; distance atoms may move from the box of the first frame before a new mesh is created
_METHODS = [name for name, each in MAP_METHODS.items() if each.atom_by_atom]
MOST_ATOMS = 1 << 20  # total atoms of frames computed together


class FrameSlab:
    """Slices `first` to `last` - 1 of a map, computed by one device for successive frames.

    Frames are launched without waiting, so that the host prepares the next frame while the device computes.

    slab : contains the map of the last launched frame
    seconds : kernel time of the completed frames
    """

    def __init__(self, part: DeviceMap, first: int, last: int) -> None:
        self.part, self.seconds = part, 0.0
        self.slab = part.slab(part.queue(), first, last)
        self._under_way: deque[Queue] = deque()

    def start(self, problem: MapProblem) -> Queue:
        """Launch the map at the positions of a problem. Further launches can be added to the returned queue."""
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
        """Read the values (slices, ny, nx) of a slab with the same slices."""
        nx, ny, _ = slab.problem.grid.shape
        shape = 1, slab.last - slab.first, ny, nx
        values = self.part.device.results.array(shape, slab.problem.precision)
        slab.download(self.part.queue(), values)
        found: NDArray[np.floating] = values[0]
        return found

    def places(self, points: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the indices of grid points (n, 3) in the map of the slab, which must contain them."""
        nx, ny, _ = self.slab.shape
        found: NDArray[np.int64] = ((points[:, 2] - self.slab.first) * ny + points[:, 1]) * nx + points[:, 0]
        return found.astype(np.int32)

    def owns(self, points: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which grid points (n, 3) belong to the slab."""
        z = points[:, 2]
        return (z >= self.slab.first) & (z < self.slab.last)

    def _wait(self) -> None:
        """Wait for the oldest pending frame, and add its kernel time."""
        from ..opencl.queue import seconds_of

        queue = self._under_way.popleft()
        if queue.events:
            queue.wait(queue.events[-1])
        self.seconds += sum(map(seconds_of, queue.events), 0.0)


class SlabStatistics:
    """Statistics of a slab over frames.

    n : number of maps
    """

    def __init__(self, queue: Queue, slab: MapSlab) -> None:
        self.n, self._slab = 0, slab
        total = "float64" if queue.device.has_float64 else queue.precision
        self._means, self._squares = (queue.empty(slab.n_points, total) for _ in range(2))
        self._lowest, self._highest = (queue.empty(slab.n_points) for _ in range(2))
        self._doubles = int(queue.device.has_float64)

    def add(self, queue: Queue) -> None:
        """Add the slab's map to the statistics, after all earlier launches of the queue."""
        self.n += 1
        sums = dict(means=self._means, squares=self._squares, lowest=self._lowest, highest=self._highest)
        self._launch(queue, "add_map", dict(n_maps=self.n, map=self._slab.map, **sums))

    def slabs(self, queue: Queue) -> Iterator[tuple[str, MapSlab]]:
        """Yield each statistic of COMBINATIONS with a slab that contains it.

        Each must be downloaded before the next is requested, because "avg" and "stdev" use the memory of the last
        frame's map.
        """
        yield "min", replace(self._slab, map=self._lowest)
        yield "max", replace(self._slab, map=self._highest)
        self._launch(queue, "mean_values", dict(means=self._means, to=self._slab.map))
        yield "avg", self._slab
        self._launch(queue, "deviations", dict(n_maps=self.n, squares=self._squares, to=self._slab.map))
        yield "stdev", self._slab

    def _launch(self, queue: Queue, name: str, arguments: Arguments) -> None:
        n = self._slab.n_points
        kernel = queue.kernel("potmap/statistics.cl", name, DOUBLES=self._doubles)
        queue.launch(kernel, (n,), (GROUP,), dict(n_points=n, **arguments))


def values_at(queue: Queue, slab: MapSlab, places: NDArray[np.int32], device: Device) -> NDArray[np.floating]:
    """Start reading a slab's map at indices `places`, (n,); values are valid once the queue's events are complete."""
    found = np.empty(len(places), queue.precision)
    if len(places):
        there = queue.empty(len(places))
        kernel = queue.kernel("potmap/statistics.cl", "values_at", DOUBLES=int(device.has_float64))
        arguments = dict(n_points=len(places), points=queue.upload(places, np.int32), map=slab.map, to=there)
        queue.launch(kernel, (len(places),), (GROUP,), arguments)
        queue.events.append(queue.start_read(found, there))
    return found


# Values of a frame's map at sample points: computed ones, in parts by device, and exact ones.
_Sample = tuple[list[NDArray[np.floating]], Callable[[], Floats]]


class MapFrames:
    """Maps of a molecule's frames, which are added one by one. Equal frames give equal bits with any number of devices.

    n_frames : number of frames used
    """

    def __init__(self, atoms: Atoms, grid: Grid, options: MapOptions) -> None:
        """atoms : at any positions. Raises the same errors as `potmap`, and InputError for the field."""
        if options.field:
            raise InputError("the field cannot be averaged over frames; leave it out")
        self._start = time.perf_counter()
        plan = planned(atoms, grid, options)
        wide = plan.problem.with_margin(MARGIN)
        split = SPLIT_METHODS.get(plan.method)
        self._plan = plan
        if split is None or not split.lacks(wide):
            plan._problem = wide
        self._grid, self._options, self._atoms = grid, options, atoms
        self.n_frames = 0
        self._slabs: list[FrameSlab] = []
        self._statistics: list[SlabStatistics] = []
        self._samples: deque[_Sample] = deque()
        self._compared: list[tuple[Floats, Floats]] = []  # (n,) computed and exact values

    @property
    def method(self) -> str:
        """Key of MAP_METHODS."""
        return self._plan.method

    def add(self, atoms: Atoms) -> None:
        """Add a frame with the positions of `atoms`.

        Raises InputError, and skips the frame, if an atom is on a grid point or outside the mesh.
        """
        require_apart(atoms, self._grid, self._options.min_distance, self._options.precision)
        problem = self._plan.problem.moved(atoms)
        if problem.n_atoms and problem.box is not self._plan.problem.box:
            require_able(self.method, problem)
        if not self._slabs:
            problem = self._begin(problem)
        number = self.n_frames + 1
        sample = self._sample_for(problem, number)
        for slab, statistics in zip(self._slabs, self._statistics, strict=True):
            queue = slab.start(problem)
            statistics.add(queue)
            if sample is not None:
                points, (found, _) = sample
                found.append(values_at(queue, slab.slab, slab.places(points[slab.owns(points)]), slab.part.device))
            queue.submit()
        self.n_frames = number
        if sample is not None:
            self._samples.append(sample[1])
            if len(self._samples) > AHEAD:  # its frame is complete
                self._compare(self._samples.popleft())

    def result(self) -> PotmapResult:
        """Return the mean of all frames so far, with all statistics in `maps`. Raises InputError without frames."""
        if not self.n_frames:
            raise InputError("no frames are given")
        for slab in self._slabs:
            slab.finish()
        while self._samples:
            self._compare(self._samples.popleft())
        values = self._values()
        error = self._error(values["avg"], values["stdev"])
        maps = {
            name: self._plan._map_of(values[name], f"{name} of {self.n_frames:,} frames: ") for name in COMBINATIONS
        }
        seconds = {"kernel": max(slab.seconds for slab in self._slabs), "total": time.perf_counter() - self._start}
        return self._plan._result(self._atoms, maps["avg"], seconds, [error], maps=maps, n_models=self.n_frames)

    def _begin(self, problem: MapProblem) -> MapProblem:
        """Prepare the devices, with a mesh or lattices fine enough for the first map."""
        ready = self._plan
        ready._problem = problem
        if self.method in SPLIT_METHODS:
            ready._compute_accurately()
        depth, n_devices = self._grid.shape[2], len(ready.devices)
        bounds = [depth * k // n_devices for k in range(n_devices + 1)]
        self._slabs = [
            FrameSlab(ready._part(k), *slices) for k, slices in enumerate(pairwise(bounds)) if slices[0] < slices[1]
        ]
        self._statistics = [SlabStatistics(slab.part.queue(), slab.slab) for slab in self._slabs]
        return ready.problem

    def _sample_for(self, problem: MapProblem, number: int) -> tuple[NDArray[np.int64], _Sample] | None:
        """Return sample points (n, 3), sorted by slice, with a list that receives their values; None for direct sums.

        number : of the frame among those used, from 1
        """
        if self.method == "direct" or not problem.n_atoms:
            return None
        few = min(MOST_POINTS, max(FEWEST_POINTS, EVALUATIONS // problem.n_atoms))
        points = sampled_points(self._grid.shape, FIRST_POINTS if number == 1 else few, (SEED, number))[0]
        points = points[np.argsort(points[:, 2], kind="stable")]
        return points, ([], exact_values(problem, points, self._plan.devices[0]))

    def _compare(self, sample: _Sample) -> None:
        found, exact = sample
        self._compared.append((np.concatenate(found).astype(np.float64), exact()[:, 0]))

    def _values(self) -> dict[str, NDArray[np.floating]]:
        """Return the statistics of the whole map, (nz, ny, nx) each."""
        parts: list[dict[str, NDArray[np.floating]]] = []
        for slab, statistics in zip(self._slabs, self._statistics, strict=True):
            parts.append({name: slab.downloaded(each) for name, each in statistics.slabs(slab.part.queue())})
        return {name: np.concatenate([part[name] for part in parts]) for name in COMBINATIONS}

    def _error(self, mean: NDArray[np.floating], deviation: NDArray[np.floating]) -> MapError | None:
        """Return the error of all frames' maps together, relative to their root mean square; None for direct sums."""
        if not self._compared:
            return None
        found, exact = (np.concatenate(column)[:, None] for column in zip(*self._compared, strict=True))
        return measured(found, exact, (sum_of_squares(mean) + sum_of_squares(deviation)) / mean.size)


class AtomPotentials:
    """Potential at chosen atoms by direct sums over all other atoms, including bonded ones.

    phi_i = k / dielectric * sum_{j != i} q_j / |r_i - r_j|          (docs/theory/potmap.md, section 8)

    chosen : (k,) indices of the atoms; unit : of the values
    """

    def __init__(self, atoms: Atoms, chosen: NDArray[np.intp], options: MapOptions) -> None:
        """Raises the same errors as `potmap`, and InputError for the field and for methods that need a grid."""
        if options.field or not arguments.is_among(options.method, _METHODS):
            raise InputError(
                f"values at atoms support the methods {' and '.join(_METHODS)}, without a field; choose direct"
            )
        self._atoms, self.chosen, self.unit = atoms, chosen, options.unit
        self._plan = planned(atoms, Grid(atoms.positions.mean(axis=0), 1.0, (1, 1, 1)), options)
        self._charges = self._plan._factor * atoms.charges

    @property
    def device(self) -> str:
        """Name of the device."""
        return str(self._plan.devices[0])

    def evaluate(self, positions: NDArray[np.floating]) -> tuple[Floats, dict[int, str]]:
        """Compute values (m, k) at positions (m, n, 3) A; NaN for failed frames, with error messages by index."""
        errors = {int(k): self._fault(positions[k]) for k in np.flatnonzero(~np.isfinite(positions).all(axis=(1, 2)))}
        n, evals = len(self._atoms), first_evals(self._plan.devices[0])
        step = max(1, min(MOST_ATOMS // n, int(evals / (n * len(self.chosen)))))
        parts = [self._computed(positions[k : k + step]) for k in range(0, len(positions), step)]
        values = np.concatenate(parts)
        for k in np.flatnonzero(~np.isfinite(values).all(axis=1)):
            atom = int(self.chosen[np.flatnonzero(~np.isfinite(values[k]))[0]])
            errors.setdefault(int(k), f"another atom is at the position of {self._atoms.describe(atom)}")
        values[list(errors)] = np.nan
        return values, errors

    def _fault(self, positions: NDArray[np.floating]) -> str:
        """Return the error message for invalid positions."""
        try:
            self._atoms.moved(positions)
        except InputError as error:
            return str(error)
        raise AssertionError("these positions are finite")

    def _computed(self, positions: NDArray[np.floating]) -> Floats:
        """Compute values (m, k) of a few frames, in launches that do not exceed the time limit of GPU drivers."""
        from ..opencl.queue import Queue

        problem, device, (m, n, _) = self._plan.problem, self._plan.devices[0], positions.shape
        queue = Queue(device, problem.precision)
        atoms = np.empty((m, n, 4), problem.precision)
        with np.errstate(invalid="ignore"):  # frames with non-finite positions are reported as errors
            atoms[:, :, :3] = positions - positions.mean(axis=1, keepdims=True, dtype=np.float64)
        atoms[:, :, 3] = self._charges
        there, kernel = (
            queue.upload(atoms),
            queue.kernel("potmap/at_atoms.cl", "potential_at_atoms", **problem.switches),
        )
        step, parts = max(1, int(first_evals(device) / (m * n))), list[NDArray[np.floating]]()
        for first in range(0, len(self.chosen), step):
            chosen = self.chosen[first : first + step]
            k = len(chosen)
            found = queue.empty(m * k)
            queue.launch(
                kernel, (k, m), (min(32, k), 1),
                dict(
                    law=problem.law, n_atoms=n, n_chosen=k, chosen=queue.upload(chosen, np.int32), atoms=there,
                    potentials=found,
                ),
            )  # fmt: skip
            parts.append(queue.download(found, m * k).reshape(m, k))
        return np.concatenate(parts, axis=1).astype(np.float64)
