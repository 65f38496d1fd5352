"""Implicit-solvent energy and its gradient: Lennard-Jones, Coulomb, Generalized Born and nonpolar term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common.modules import lazy_names, make_callable
from ..gb_models.solvent_model import SolventModel
from .born import BORN
from .plan import Energy
from .result import TERMS, EnergyBatch, EnergyResult
from .term_set import summary
from .terms import Term
from .variants import VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = [
    "BORN",
    "TERMS",
    "VARIANTS",
    "Energy",
    "EnergyBatch",
    "EnergyResult",
    "Term",
    "choose_variant",
    "energy",
    "summary",
]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "born": "Born check_born chosen_born",
            "frozen": "Frozen",
            "layout": "BlocksLayout RowsLayout SquaresLayout",
            "masks": "Masks",
            "result": "ALL_TERMS PASS_TERMS",
        },
    )


def energy(
    atoms: Atoms,
    *,
    gradient: bool = True,
    fixed_radii: bool = False,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    per_atom: bool = False,
    frozen: ArrayLike | None = None,
    terms: Sequence[Term] = (),
    only_terms: Sequence[str] | None = None,
    precision: str = "float32",
    variant: str = "auto",
    born: str = "auto",
    accuracy: float | None = None,
    device: Device | int | str | None = None,
    model: SolventModel | None = None,
) -> EnergyResult:
    """Lennard-Jones, Coulomb, GB and nonpolar energy of a molecule, and its full gradient.

    docs/theory/energy.md has the formulas. Use Energy to evaluate many conformations of one molecule.

    atoms : Atoms with charges, lj_sigma, lj_epsilon, gb_radii and gb_scales, as far as the terms take them; n >= 1
    gradient : False for energies alone
    fixed_radii : True for the gradient at Born radii that stay as they are, as PELE has it
    one_four : "scale" 1-4 pairs of Lennard-Jones and Coulomb by atoms.one_four, or "exclude" them; pairs one or two
        bonds apart are always excluded, and GB takes all pairs
    cutoff : A; pairs beyond do not count in Lennard-Jones, Coulomb and GB, but in the Born radii; None for all pairs
    per_atom : True for energies of atoms and residues
    frozen : atoms that never move, a mask (n,) or indices. Their gradient is 0, and what they give each other is
        computed once if it does not change; no conformation may have them elsewhere
    terms : further terms, such as PositionalRestraint(10.0)
    only_terms : names of the force field's terms to compute, such as ("bond", "angle"), or bonded, nonbonded and gb for
        several; all that are there by default
    precision : "float32" or "float64"
    variant : key of VARIANTS, or "auto"
    born : key of BORN, "pairs" or "tree", or "auto": where the Born radii come from; pair energies and the chain rule
        take all pairs. Radii of sgbnp and vdgbnp come from the "surface". "auto" takes the tree for large molecules
        without frozen atoms in float32, in float64 if an accuracy is given
    accuracy : worst relative error of a Born radius that "tree" may make, 1e-6 to 1e-4; by default 1e-5
    device : a Device, an index of `pele-ocl devices`, or part of a name; by default PELE_OCL_DEVICE or the best
    model : GB model, constants, ions, nonpolar term; by default SolventModel()

    Returns an EnergyResult, kcal/mol and A, with the kernels' time, and of "tree" the error that was measured. Cost
    n^2, memory linear in n.

    Raises InputError for coincident atoms, unknown options and energies that overflow. Raises ParameterError for a
    radius at or below the offset, and DeviceError if the device cannot do it.
    """
    plan = Energy(
        atoms, gradient=gradient, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, per_atom=per_atom,
        frozen=frozen, terms=terms, only_terms=only_terms, precision=precision, variant=variant, born=born,
        accuracy=accuracy, device=device, model=model,
    )  # fmt: skip
    return plan.evaluate(profile=True)


make_callable(__name__)
