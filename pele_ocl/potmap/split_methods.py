"""Methods that split the potential into a near and a far part, with parameters that follow from an accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..common.errors import InputError
from . import mesh, msm
from .problem import MapProblem


@dataclass(frozen=True)
class SplitMethod:
    """Functions by which a method keeps an accuracy.

    choices : of cutoffs, all that a problem allows and whose nodes the devices have room for
    tighter : the next smaller accuracy that a problem may have; None where there is none
    finest : the smallest accuracy, by precision
    has_salt : whether it does Debye screening
    reals : about how many numbers it needs on a device for a problem and a slab's points along x, y, z
    """

    choices: Callable[[MapProblem], Sequence[object]]
    tighter: Callable[[MapProblem], float | None]
    finest: dict[str, float]
    has_salt: bool
    reals: Callable[[MapProblem, tuple[int, int, int]], float]

    def lacks(self, problem: MapProblem) -> str:
        """Say what part of a problem it cannot do, in words; empty if it can do all."""
        if problem.model.distance_dependent:
            return "no dielectric that depends on the distance"
        if problem.model.min_distance:
            return "no minimum distance"
        if problem.model.kappa and not self.has_salt:
            return "no salt"
        return "" if self.choices(problem) else "no room for nodes around all atoms and points of this map"


SPLIT_METHODS = {
    "msm": SplitMethod(
        msm.cutoffs, msm.tighter, {"float32": msm.FINEST, "float64": msm.FINEST}, has_salt=False,
        reals=msm.lattice_reals,
    ),
    "mesh": SplitMethod(
        mesh.levels, mesh.tighter, {"float32": mesh.FLOAT32_ACCURACY, "float64": mesh.FINEST}, has_salt=True,
        reals=mesh.mesh_reals,
    ),
}  # fmt: skip


def require_able(method: str, problem: MapProblem) -> None:
    """Raise InputError for what a method cannot do; methods that do not split the potential can do all."""
    split = SPLIT_METHODS.get(method)
    if split is None or not (lacks := split.lacks(problem)):
        return
    able = [name for name, other in SPLIT_METHODS.items() if not other.lacks(problem)]
    raise InputError(f"the method {method} has {lacks}; choose the method {' or '.join([*able, 'direct'])}")


def finer_accuracy(method: str, problem: MapProblem) -> float | None:
    """Return the accuracy to try next if a method's map missed its own; None if there is none."""
    split = SPLIT_METHODS.get(method)
    return None if split is None else split.tighter(problem)
