"""Minimisation: structures relaxed on the device, one or thousands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common.modules import lazy_names, make_callable
from ..common.variant import Progress
from ..energy import Term
from ..gb_models.solvent_model import SolventModel
from .many import EachOptions, minimize_all
from .minimizer import Minimizer, Watch
from .options import METHODS
from .result import REASONS, MinimizeBatch, MinimizeResult

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = ["METHODS", "REASONS", "MinimizeBatch", "MinimizeResult", "Minimizer", "minimize", "minimize_many"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "bond_lengths": "BondLengths",
            "options": "Stopping",
            "preconditioner": "BLOCK FIRST_STIFFNESS HALF REACH REST SIDE block_order",
            "seats": "PlanSeats Seated",
        },
    )


def minimize(
    atoms: Atoms,
    *,
    method: str = "lbfgs",
    tolerance: float = 0.1,
    max_gradient: float | None = None,
    energy_tolerance: float | None = None,
    max_iterations: int = 10_000,
    max_seconds: float | None = None,
    terms: Sequence[Term] = (),
    frozen: ArrayLike | None = None,
    constraints: str | None = None,
    bond_repair: bool = True,
    rounds: int = 1,
    fixed_radii: bool = False,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    only_terms: Sequence[str] | None = None,
    precision: str = "float32",
    variant: str = "auto",
    device: Device | int | str | None = None,
    model: SolventModel | None = None,
) -> MinimizeResult:
    """Move the atoms downhill to a minimum of their energy; docs/theory/minimize.md has the method.

    Use Minimizer for many conformations of one molecule, minimize_many for many molecules.

    atoms : as `energy` takes them, with the bonded terms of a force field
    method : "lbfgs", "newton" for truncated Newton as PELE has it, "fire", or "steepest" for steepest descent alone
    tolerance : ends if the root mean square gradient, sqrt(sum |g|^2 / n) of the n atoms that move, is at most this,
        kcal/mol/A; OpenMM's minimiser compares it so, with a default of 10 * units.KJ_PER_MOL_NM
    max_gradient : ends where no atom's gradient is larger, kcal/mol/A
    energy_tolerance : ends where three iterations in a row change the energy by less, kcal/mol
    max_iterations, max_seconds : limits; a structure that reaches them is not converged, which is no error
    terms : further terms, such as PositionalRestraint(10.0)
    frozen : atoms that stay where they are, a mask (n,) or indices; what they give each other is left out as in
        `energy`, if all structures have them where `atoms` does
    constraints : "hbonds" holds bonds to hydrogen at the lengths of the force field, to 1e-5 A; "hbonds-present" at
        their present lengths; the gradient is then along what they leave
    bond_repair : bring bonds near their lengths before the first step if more than 2 % of them are 0.5 A off; the result
        says how many were
    rounds : minimise so many times over, as far as atoms still move, each up to max_iterations
    fixed_radii : keep the Born radii that a structure has at the beginning of each round, as PELE's alphaUpdated: false
    one_four, cutoff, only_terms, precision, variant, device, model : as in `energy`

    Raises InputError for options that do not exist, and for a structure that cannot be minimised: it says why.
    """
    minimizer = Minimizer(
        atoms, method=method, tolerance=tolerance, max_gradient=max_gradient, energy_tolerance=energy_tolerance,
        max_iterations=max_iterations, max_seconds=max_seconds, terms=terms, frozen=frozen, constraints=constraints,
        bond_repair=bond_repair, rounds=rounds, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff,
        only_terms=only_terms, precision=precision, variant=variant, device=device, model=model,
    )  # fmt: skip
    return minimizer.minimize()


def minimize_many(
    molecules: Sequence[Atoms], *, each: EachOptions | None = None, errors: Literal["raise", "record"] = "raise",
    progress: Progress | None = None, watch: Watch | None = None, **options: object,
) -> MinimizeBatch:  # fmt: skip
    """Minimise different molecules, or one from many places; what each gives depends on that molecule alone.

    They share launches, each with the bits that it has alone on the same device:
    docs/theory/minimize.md, section 8.

    each : a function of the Atoms that gives further options for it, such as its own terms and frozen atoms
    errors, progress, watch : as of Minimizer.minimize_batch; the molecule that is named is the first that was found
    options : as of Minimizer, the same for all
    """
    return minimize_all(molecules, each, errors, progress, watch, options)


make_callable(__name__)
