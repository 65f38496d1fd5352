"""Maps as accurate as asked for: which method, and further tries where the measured error is too large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..variant import Progress
from .error import MapError, Sample
from .mesh import levels, mesh_evaluations, table_waves, tighter
from .problem import MapProblem
from .slabs import compute, evaluations_per_second
from .variants import VARIANTS

if TYPE_CHECKING:
    from ..opencl.device import Device

DEFAULT_ACCURACY = 1e-4
# Seconds of the host beside the kernels (measured): of a map by the mesh, and of a wave number of its table.
MESH_SECONDS, WAVE_SECONDS = 0.02, 45e-9
FINER_TRIES = 2  # of a map that no atom stands in


@dataclass(frozen=True, eq=False)
class Computed:
    """A map's values (components, nz, ny, nx), its kernels' seconds, and how it was found.

    error : None of direct sums; accuracy : of the mesh that was taken in the end, 0 without one
    """

    values: NDArray[np.floating]
    seconds: float
    error: MapError | None = None
    accuracy: float = 0.0


def method_for(problem: MapProblem, devices: Sequence[Device]) -> str:
    """The method that takes least time on the devices, by rule, "direct" or "mesh"."""
    if why_no_mesh(problem) or not problem.n_atoms:
        return "direct"
    rate = sum(map(evaluations_per_second, devices))
    mesh = sum(
        mesh_evaluations(each) / rate + WAVE_SECONDS * table_waves(each) + MESH_SECONDS for each in _tries(problem)
    )
    return "mesh" if mesh < problem.evaluations * problem.components / rate else "direct"


def _tries(problem: MapProblem) -> Iterator[MapProblem]:
    """The problem with each accuracy that may be tried, one after the other.

    Beside a molecule its parts cancel, and the error is a larger share of the rest: finer meshes are likely to follow.
    """
    yield problem
    for _ in range(0 if problem.n_near else FINER_TRIES):
        finer = tighter(problem)
        if finer is None:
            return
        problem = replace(problem, accuracy=finer)
        yield problem


def why_no_mesh(problem: MapProblem) -> str:
    """The part of a problem that a mesh cannot do, in words; empty where it can do all."""
    if problem.model.distance_dependent:
        return "no dielectric that depends on the distance"
    if problem.model.min_distance:
        return "no minimum distance"
    return "" if levels(problem) else "no room for nodes around all atoms and points of this map"


def require_mesh(problem: MapProblem) -> None:
    """Raise InputError for what a mesh cannot do."""
    if lacks := why_no_mesh(problem):
        raise InputError(f"the method mesh has {lacks}; choose the method direct")


def compute_accurately(
    problem: MapProblem, variant: str, devices: Sequence[Device], progress: Progress | None = None
) -> Computed:
    """As `slabs.compute`; a mesh that misses its accuracy is followed by the next finer one."""
    method, wanted, seconds = VARIANTS[variant].method, problem.accuracy, 0.0
    sample: Sample | None = None
    while True:
        summed = compute(problem, variant, devices, progress)
        seconds += summed.seconds
        if summed.squares is None:
            return Computed(summed.values, seconds)
        sample = sample or Sample(problem, devices[0])
        error = sample.error(summed.values[0], summed.squares)
        finer = tighter(problem) if method == "mesh" and error.norm > wanted else None
        if finer is None:
            return Computed(summed.values, seconds, error, problem.accuracy if method == "mesh" else 0.0)
        problem = replace(problem, accuracy=finer)
