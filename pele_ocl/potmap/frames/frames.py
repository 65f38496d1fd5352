"""Maps of one molecule in many frames: mean, standard deviation and extremes at every point, in constant memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...common.errors import InputError
from ...grid import Grid
from ..accuracy import compute_accurately
from ..computing import planned
from ..error import SEED, MapError, exact_values, measured, sampled_points, sum_of_squares
from ..facts import medium_facts
from ..methods import SPLIT_METHODS, require_able
from ..models import ModelMaps
from ..options import MapOptions
from ..plan import MapPlan
from ..problem import MapProblem
from ..result import COMBINATIONS, PotmapResult
from ..touching import require_apart
from .slab import AHEAD, FrameSlab
from .statistics import SlabStatistics, values_at

# At which the map of the first frame, and of each further one, is compared with direct sums.
FIRST_POINTS, MOST_POINTS, FEWEST_POINTS = 1000, 16, 4
EVALUATIONS = 50_000  # of these sums in a frame, which cost the host half a millisecond
MARGIN = 3.0  # A, that atoms may move beyond where the first frame has them before a mesh is made again


@dataclass(frozen=True, eq=False)
class _FrameSample:
    """A frame's map at a few points: as it was computed, in parts that come from the devices, and exactly."""

    found: list[NDArray[np.floating]]
    exact: Callable[[], Floats]


class MapFrames:
    """Takes the frames of a molecule one by one. Equal frames give equal bits, with any number of devices.

    n_frames : that count
    """

    def __init__(self, atoms: Atoms, grid: Grid, options: MapOptions) -> None:
        """atoms : at any positions. Raises InputError and DeviceError as `potmap` does, and for the field."""
        if options.field:
            raise InputError("the field of many frames is not summed up; leave it out")
        self._start = time.perf_counter()
        plan = planned(atoms, grid, options)
        wide = plan.problem.with_margin(MARGIN)
        split = SPLIT_METHODS.get(plan.method)
        self._plan = plan if split is not None and split.lacks(wide) else replace(plan, problem=wide)
        self._grid, self._options, self._atoms, self._wanted = grid, options, atoms, plan.problem.accuracy
        self.n_frames = 0
        self._slabs: list[FrameSlab] = []
        self._statistics: list[SlabStatistics] = []
        self._samples: deque[_FrameSample] = deque()
        self._compared: list[tuple[Floats, Floats]] = []  # (n,) as computed, and exactly

    @property
    def method(self) -> str:
        """Key of MAP_METHODS."""
        return self._plan.method

    def add(self, atoms: Atoms) -> None:
        """Let a frame count: the atoms at its positions.

        Raises InputError, and leaves the frame out, if an atom is on a grid point or outside the mesh.
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
                points, of = sample
                of.found.append(values_at(queue, slab.slab, slab.places(points[slab.owns(points)]), slab.part.device))
            queue.submit()
        self.n_frames = number
        if sample is not None:
            self._samples.append(sample[1])
            if len(self._samples) > AHEAD:  # its frame was waited for
                self._compare(self._samples.popleft())

    def result(self) -> ModelMaps:
        """Return the maps of all frames so far. Raises InputError if there is none."""
        if not self.n_frames:
            raise InputError("there is no frame to make a map of")
        for slab in self._slabs:
            slab.finish()
        while self._samples:
            self._compare(self._samples.popleft())
        values = self._values()
        error = self._error(values["avg"], values["stdev"])
        maps = {name: self._plan.map_of(values[name], f"{name} of {self.n_frames:,} frames: ") for name in COMBINATIONS}
        seconds = {"kernel": max(slab.seconds for slab in self._slabs), "total": time.perf_counter() - self._start}
        plan = self._plan
        result = PotmapResult(
            maps["avg"], None, len(self._atoms), plan.device, plan.variant, plan.problem.precision, seconds,
            plan.method, error, accuracy=plan.problem.accuracy if plan.method in SPLIT_METHODS else 0.0,
            wanted=self._wanted if plan.method in SPLIT_METHODS else 0.0, atoms=self._atoms, model=plan.problem.model,
            settings=medium_facts(self._atoms, self._options),
        )  # fmt: skip
        return ModelMaps(maps, result, self.n_frames, seconds)

    def _begin(self, problem: MapProblem) -> MapProblem:
        """Make the devices ready, with a mesh or lattices as fine as the first map needs."""
        ready = MapPlan(problem, self._plan.steps, self._plan.devices)
        if self.method in SPLIT_METHODS:
            compute_accurately(ready)
        self._plan = replace(self._plan, problem=ready.problem)
        depth, n_devices = self._grid.shape[2], len(ready.devices)
        bounds = [depth * k // n_devices for k in range(n_devices + 1)]
        self._slabs = [
            FrameSlab(ready.part(k), *slices) for k, slices in enumerate(pairwise(bounds)) if slices[0] < slices[1]
        ]
        self._statistics = [SlabStatistics(slab.part.queue(), slab.slab) for slab in self._slabs]
        return ready.problem

    def _sample_for(self, problem: MapProblem, number: int) -> tuple[NDArray[np.int64], _FrameSample] | None:
        """Points of the grid (n, 3), slice by slice, and room for the values there; None of direct sums.

        number : of the frame among all that count, from 1
        """
        if self.method == "direct" or not problem.n_atoms:
            return None
        few = min(MOST_POINTS, max(FEWEST_POINTS, EVALUATIONS // problem.n_atoms))
        points = sampled_points(self._grid.shape, FIRST_POINTS if number == 1 else few, (SEED, number))[0]
        points = points[np.argsort(points[:, 2], kind="stable")]
        return points, _FrameSample([], exact_values(problem, points, self._plan.devices[0]))

    def _compare(self, sample: _FrameSample) -> None:
        self._compared.append((np.concatenate(sample.found).astype(np.float64), sample.exact()[:, 0]))

    def _values(self) -> dict[str, NDArray[np.floating]]:
        """Collect the statistics of the whole map, (nz, ny, nx) each."""
        parts: list[dict[str, NDArray[np.floating]]] = []
        for slab, statistics in zip(self._slabs, self._statistics, strict=True):
            parts.append({name: slab.downloaded(each) for name, each in statistics.slabs(slab.part.queue())})
        return {name: np.concatenate([part[name] for part in parts]) for name in COMBINATIONS}

    def _error(self, mean: NDArray[np.floating], deviation: NDArray[np.floating]) -> MapError | None:
        """Measure the error of all frames' maps together, relative to their root mean square; None for direct sums."""
        if not self._compared:
            return None
        found, exact = (np.concatenate(column)[:, None] for column in zip(*self._compared, strict=True))
        return measured(found, exact, (sum_of_squares(mean) + sum_of_squares(deviation)) / mean.size)
