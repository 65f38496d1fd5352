"""Nonbonded energy and gradient over a pair list: Lennard-Jones, Coulomb and the GB pair term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..atoms import Atoms, Floats
from ..common.modules import lazy_names, make_callable
from ..common.variant import Progress
from ..gb_models.solvent_model import SolventModel
from ..pairs import Pairs
from .plan import Nonbond
from .result import NonbondBatch, NonbondResult
from .variants import VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = ["VARIANTS", "Nonbond", "NonbondBatch", "NonbondResult", "choose_variant", "nonbond"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "index": "prefix_sum segments_by_counting segments_by_sorting sort_keys",
        },
    )


def nonbond(
    atoms: Atoms,
    pairs: Pairs,
    born_radii: Floats | None = None,
    *,
    solvent: Literal["gb", "vacuum"] = "gb",
    gradient: bool = True,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | None = None,
    internal_dielectrics: Floats | None = None,
    progress: Progress | None = None,
) -> NonbondResult:
    """Lennard-Jones, Coulomb and GB energy of the pairs of a list, and the gradient with Born radii held fixed.

    docs/theory/nonbond.md has the formulas. Use Nonbond to evaluate one list many times.

    atoms : Atoms with charges, lj_sigma and lj_epsilon
    pairs : PairList or AllPairs, in any order
    born_radii : (n,) A; by default computed by `solvent`
    solvent : "gb", or "vacuum" for no GB term
    variant : key of VARIANTS, or "auto"
    precision, device, model, progress : as in `solvent`
    internal_dielectrics : (n,) internal dielectric of each atom; a pair takes the larger (PELE's VDGBNP). By default
        the model's solute dielectric

    Returns a NonbondResult, kcal/mol and A. Cost: pairs. Raises InputError for options or arrays that do not fit,
    coincident atoms, and DeviceError where the device cannot do it.
    """
    plan = Nonbond(
        atoms, pairs, solvent=solvent, gradient=gradient, variant=variant, precision=precision, device=device,
        model=model, internal_dielectrics=internal_dielectrics, progress=progress,
    )  # fmt: skip
    return plan.evaluate(born_radii=born_radii, profile=True)


make_callable(__name__)
