"""Table of the methods of `potmap`, and functions that depend on it.

Their host code is in pele_ocl/potmap/variants.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..common.errors import InputError
from ..common.variant import PRECISIONS
from . import mesh, msm
from .problem import MapProblem

COARSEST = 0.1  # largest accuracy value


@dataclass(frozen=True)
class SplitMethod:
    """Properties of a method that splits the potential into a near and a far part to reach an accuracy.

    choices : returns the possible cutoffs of a problem whose nodes fit in the memory of the devices
    tighter : returns the next smaller accuracy of a problem, or None
    finest : smallest accuracy, by precision
    has_salt : whether Debye screening is supported
    needs : estimates the memory for nodes on a device, for a problem and a slab's points along x, y, z
    """

    choices: Callable[[MapProblem], Sequence[object]]
    tighter: Callable[[MapProblem], float | None]
    finest: dict[str, float]
    has_salt: bool
    needs: Callable[[MapProblem, tuple[int, int, int]], mesh.NodeNeeds]

    @property
    def accuracies(self) -> str:
        """Range of supported accuracies, as text."""
        single, double = (f"{self.finest[precision]:g}".replace("e-0", "e-") for precision in PRECISIONS)
        further = f", in float64 to {double}" if double != single else ""
        return f"{COARSEST:g} to {single}{further}"

    def lacks(self, problem: MapProblem) -> str:
        """Return which feature of a problem is not supported, as text; empty if all are."""
        if problem.model.distance_dependent:
            return "no distance-dependent dielectric"
        if problem.model.min_distance:
            return "no minimum distance"
        if problem.model.kappa and not self.has_salt:
            return "no salt"
        return "" if self.choices(problem) else "not enough nodes for all atoms and points of this map"


@dataclass(frozen=True)
class MapMethod:
    """A method of `potmap`.

    summary : short description; variant : the default variant, "" without variants
    atom_by_atom : whether each atom is evaluated separately at each point, so that no grid is needed and the cost is
        proportional to the number of atoms
    within_cutoff : whether atoms beyond the cutoff are excluded, also from the reference potential
    has_rests : whether kernels use the rounding errors of coordinates. If not, float32 maps are corrected at points
        next to atoms, as for direct sums: pele_ocl/potmap/corrections.py
    split : properties of methods with an accuracy, else None
    """

    summary: str
    variant: str
    atom_by_atom: bool = False
    within_cutoff: bool = False
    has_rests: bool = False
    split: SplitMethod | None = None

    def is_corrected(self, precision: str) -> bool:
        """Return whether points next to atoms are corrected afterwards."""
        return precision == "float32" and not self.has_rests


MAP_METHODS = {
    "direct": MapMethod("sums all atoms", "blocked", atom_by_atom=True),
    "cutoff": MapMethod(
        "sums atoms within the cutoff", "cutoff", atom_by_atom=True, within_cutoff=True, has_rests=True,
    ),
    "msm": MapMethod(
        "multilevel summation, to a given accuracy", "msm", has_rests=True,
        split=SplitMethod(
            msm.cutoffs, msm.tighter, {"float32": msm.FINEST, "float64": msm.FINEST}, has_salt=False,
            needs=msm.lattice_needs,
        ),
    ),
    "mesh": MapMethod(
        "Fourier transforms, to a given accuracy", "mesh", has_rests=True,
        split=SplitMethod(
            mesh.levels, mesh.tighter, {"float32": mesh.FLOAT32_ACCURACY, "float64": mesh.FINEST}, has_salt=True,
            needs=mesh.mesh_needs,
        ),
    ),
    "pb": MapMethod("solves the Poisson-Boltzmann equation", ""),  # has no variants, see potmap/poisson_boltzmann.py
}  # fmt: skip
METHODS = (*MAP_METHODS, "auto")  # "auto" selects one by cost, see potmap/plan.py
SPLIT_METHODS = {name: method.split for name, method in MAP_METHODS.items() if method.split is not None}


def choose_variant(method: str) -> str:
    """Return the default variant of a method."""
    return MAP_METHODS[method].variant


def require_able(method: str, problem: MapProblem) -> None:
    """Raise InputError for unsupported features; only methods that split the potential have such limits."""
    split = SPLIT_METHODS.get(method)
    if split is None or not (lacks := split.lacks(problem)):
        return
    able = [name for name, other in SPLIT_METHODS.items() if not other.lacks(problem)]
    raise InputError(f"the method {method} has {lacks}; choose the method {' or '.join([*able, 'direct'])}")


def finer_accuracy(method: str, problem: MapProblem) -> float | None:
    """Return the next accuracy to try if a method's map is not accurate enough; None if there is none."""
    split = SPLIT_METHODS.get(method)
    return None if split is None else split.tighter(problem)
