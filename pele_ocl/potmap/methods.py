"""Methods of maps, by the names of `method`: a table, and what follows from its entries.

Their host steps are in pele_ocl/potmap/variants.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..common.errors import InputError
from ..common.variant import PRECISIONS
from . import mesh, msm
from .problem import MapProblem

COARSEST = 0.1  # the largest error that can be asked for


@dataclass(frozen=True)
class SplitMethod:
    """Functions by which a method keeps an accuracy: it splits the potential into a near and a far part.

    choices : of cutoffs, all that a problem allows and whose nodes the devices have room for
    tighter : the next smaller accuracy that a problem may have; None where there is none
    finest : the smallest accuracy, by precision
    has_salt : whether it does Debye screening
    needs : memory of its nodes on a device, about, for a problem and a slab's points along x, y, z
    """

    choices: Callable[[MapProblem], Sequence[object]]
    tighter: Callable[[MapProblem], float | None]
    finest: dict[str, float]
    has_salt: bool
    needs: Callable[[MapProblem, tuple[int, int, int]], mesh.NodeNeeds]

    @property
    def accuracies(self) -> str:
        """Tell in words which accuracies it can be asked for."""
        single, double = (f"{self.finest[precision]:g}".replace("e-0", "e-") for precision in PRECISIONS)
        further = f", in float64 to {double}" if double != single else ""
        return f"{COARSEST:g} to {single}{further}"

    def lacks(self, problem: MapProblem) -> str:
        """Say what part of a problem it cannot do, in words; empty if it can do all."""
        if problem.model.distance_dependent:
            return "no dielectric that depends on the distance"
        if problem.model.min_distance:
            return "no minimum distance"
        if problem.model.kappa and not self.has_salt:
            return "no salt"
        return "" if self.choices(problem) else "no room for nodes around all atoms and points of this map"


@dataclass(frozen=True)
class MapMethod:
    """A method of `potmap`.

    summary : what it does; variant : the one that the variant "auto" stands for, "" for none
    atom_by_atom : whether it meets each atom that counts at a point by itself. It then needs no grid, and its cost
        follows from their number
    within_cutoff : whether atoms beyond the cutoff do not count, nor in the potential that maps are compared with
    has_rests : whether its kernels know what rounding took from coordinates. If not, float32 maps get corrections at
        the points next to atoms, as direct sums need them: pele_ocl/potmap/corrections.py
    split : how it keeps an accuracy; None if it is asked for none
    """

    summary: str
    variant: str
    atom_by_atom: bool = False
    within_cutoff: bool = False
    has_rests: bool = False
    split: SplitMethod | None = None

    def is_corrected(self, precision: str) -> bool:
        """Return whether the points next to atoms are to be put right after it."""
        return precision == "float32" and not self.has_rests


MAP_METHODS = {
    "direct": MapMethod("sums all atoms", "blocked", atom_by_atom=True),
    "cutoff": MapMethod(
        "sums atoms within the cutoff", "cutoff", atom_by_atom=True, within_cutoff=True, has_rests=True,
    ),
    "msm": MapMethod(
        "keeps an accuracy by multilevel summation", "msm", has_rests=True,
        split=SplitMethod(
            msm.cutoffs, msm.tighter, {"float32": msm.FINEST, "float64": msm.FINEST}, has_salt=False,
            needs=msm.lattice_needs,
        ),
    ),
    "mesh": MapMethod(
        "keeps an accuracy by Fourier transforms", "mesh", has_rests=True,
        split=SplitMethod(
            mesh.levels, mesh.tighter, {"float32": mesh.FLOAT32_ACCURACY, "float64": mesh.FINEST}, has_salt=True,
            needs=mesh.mesh_needs,
        ),
    ),
    "pb": MapMethod("solves the Poisson-Boltzmann equation", ""),  # it has no variants: potmap/poisson_boltzmann.py
}  # fmt: skip
METHODS = (*MAP_METHODS, "auto")  # which is one of these, by cost: potmap/plan.py
SPLIT_METHODS = {name: method.split for name, method in MAP_METHODS.items() if method.split is not None}


def choose_variant(method: str) -> str:
    """Return the variant of `auto`."""
    return MAP_METHODS[method].variant


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
