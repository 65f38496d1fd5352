"""Maps as accurate as asked for: which method, and further tries where the measured error is too large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..common.variant import Progress
from .error import MapError, Sample
from .mesh import mesh_evaluations, table_waves
from .methods import SPLIT_METHODS, finer_accuracy
from .plan import MapPlan
from .problem import MapProblem
from .slabs import evaluations_per_second

if TYPE_CHECKING:
    from ..opencl.device import Device

DEFAULT_ACCURACY = 1e-4
# Seconds of the host beside the kernels (measured): of a map by the mesh, and of a wave number of its table.
MESH_SECONDS, WAVE_SECONDS = 0.02, 45e-9
FINER_TRIES = 2  # of a map that no atom stands in


@dataclass(frozen=True, eq=False)
class MapValues:
    """A map's values (components, nz, ny, nx), its kernels' seconds, and how it was found.

    errors : of the potential and of the field, as far as it is computed; none of direct sums
    accuracy : of the mesh or the lattices that were taken in the end, 0 without them
    wanted : the accuracy that was asked for; 0 where none can be
    """

    values: NDArray[np.floating]
    seconds: float
    errors: tuple[MapError, ...] = ()
    accuracy: float = 0.0
    wanted: float = 0.0


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
    """Yield the problem with each accuracy that may be tried, one after the other.

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


def compute_accurately(plan: MapPlan, problem: MapProblem | None = None, progress: Progress | None = None) -> MapValues:
    """Compute a map; a mesh or lattices that miss their accuracy are followed by the next finer ones.

    problem : of the plan's atoms at other positions. The plan keeps what was taken in the end.
    """
    method, seconds = plan.variant.method, 0.0
    plan.problem = problem or plan.problem
    sample: Sample | None = None

    def begin_sample() -> None:
        nonlocal sample
        sample = sample or Sample(plan.problem, plan.devices[0])

    while True:
        summed = plan.compute(progress=progress, meanwhile=begin_sample)
        seconds += summed.seconds
        if summed.squares is None:
            return MapValues(summed.values, seconds)
        assert sample is not None
        errors = sample.errors(summed.values, summed.squares)
        if method not in SPLIT_METHODS:
            return MapValues(summed.values, seconds, errors)
        missed = any(error.norm > plan.wanted for error in errors)
        finer = finer_accuracy(method, plan.problem) if missed else None
        if finer is None:
            return MapValues(summed.values, seconds, errors, plan.problem.accuracy, plan.wanted)
        plan.refine(finer)
