"""Energies with Poisson-Boltzmann solvation instead of Generalized Born (MM/PBSA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats
from ..atoms.radii import goes_by_names
from ..atoms.tan_luo import tan_luo_radii
from ..common import arguments
from ..common.errors import InputError, PeleError
from ..common.variant import Progress
from ..energy import Energy, EnergyBatch
from ..energy.term_set import terms_there
from ..gb_models.solvent_model import SURFACES as NONPOLAR
from ..gb_models.solvent_model import OwnNumber, OwnWord, SolventModel
from ..grid import Grid
from ..pb import SOLVERS, PBIon, PBModel, PBResult, PoissonBoltzmann
from ..pb.equation import StoppedError
from ..pb.systems import Conformation, solve_systems
from ..pb_model import EQUATIONS, SURFACES, PBSolute, grid_around, grid_within
from ..results import Terms
from ..trajectories.files import Positions

TERM = "pb"  # name of the reaction field energy
_OF_GB = ("gb_pair", "gb_self")
_SOME_RADIUS = 1.0  # A


@dataclass(frozen=True)
class PBSolvent:
    """Poisson-Boltzmann solvent for binding energies: equation, grid and solver.

    Dielectric constants, ionic strength (1:1 salt), temperature and probe radius are those of the SolventModel.

    equation, surface : as in PBModel
    radii : "own" for the atoms' GB radii, or "tan-luo" for those of pbsa with radiopt=1, by AMBER atom type, 0 for
        hydrogens
    ion_radius : A, >= 0
    spacing : grid spacing, A; padding : distance from the complex to the grid boundary, A
    solver, tolerance : as in PoissonBoltzmann

    Raises InputError for invalid values.

    >>> pele_ocl.PBSolvent(spacing=1.0, padding=6.0).equation
    'linear'
    """

    equation: str = "linear"
    surface: str = "edges"
    ion_radius: float = 2.0
    spacing: float = 0.5
    padding: float = 10.0
    solver: str = "mgcg"
    tolerance: float = 1e-6
    radii: str = "own"

    def __post_init__(self) -> None:
        for name, choices in (
            ("equation", EQUATIONS), ("surface", tuple(SURFACES)), ("solver", tuple(SOLVERS)),
            ("radii", ("own", "tan-luo")),
        ):  # fmt: skip
            arguments.choice(name, getattr(self, name), choices)
        arguments.number("ion_radius", self.ion_radius, "a number in A, 0 to 100", least=0, most=100)
        arguments.number("spacing", self.spacing, "a number in A, 0.01 to 100", least=0.01, most=100)
        arguments.number("padding", self.padding, "a number in A, 1 to 10,000", least=1, most=1e4)
        arguments.number("tolerance", self.tolerance, "a number, 1e-14 to 0.1", least=1e-14, most=0.1)

    def with_constants(self, model: SolventModel) -> PBModel:
        """Build the PBModel with the constants of a SolventModel."""
        constants = arguments.instance("model", model, SolventModel, "a SolventModel")
        strength = constants.ionic_strength
        ions = [PBIon(sign, strength, self.ion_radius) for sign in (1, -1)] if strength else []
        return PBModel(
            constants.solute_dielectric, constants.solvent_dielectric, ions, constants.temperature, self.equation,
            self.surface, constants.probe_radius,
        )  # fmt: skip


def default_model(model: SolventModel | None) -> SolventModel:
    """Return the constants to use with a PBSolvent; the nonpolar term is LCPO unless the model chooses one.

    An explicit surface tension is kept. Raises InputError for a model without solvent, surface GB models, and the ACE
    nonpolar term, which needs Born radii.
    """
    model = SolventModel.or_default(model)
    if model.gb_model.vacuum or not model.gb_model.is_pairwise:
        raise InputError(f"Poisson-Boltzmann replaces the GB model; leave out gb={model.gb!r}")
    if model.surface != "ace":
        return model
    if not isinstance(model.surface, OwnWord):
        raise InputError("the surface 'ace' needs Born radii; use lcpo or none with Poisson-Boltzmann")
    is_own = isinstance(model.surface_tension, OwnNumber)
    return replace(model, surface="lcpo", surface_tension=NONPOLAR["lcpo"] if is_own else model.surface_tension)


class PBEnergy(Energy):
    """Energy with Poisson-Boltzmann solvation: the term "pb" replaces the GB terms.

    solvent : PBSolvent; other parameters as in Energy
    """

    def __init__(self, atoms: Atoms, solvent: PBSolvent, *, model: SolventModel, **choices: Any) -> None:
        atoms = model.choose_radii(atoms)
        there = terms_there(atoms, model, choices.get("one_four", "scale") == "scale")
        # The other terms do not depend on GB radii, but their evaluation requires some.
        has_gb_radii = not goes_by_names(atoms.gb_radii_set)
        super().__init__(
            _with_born_radii(atoms if has_gb_radii else atoms.with_radii("bondi"), model),
            gradient=False,
            model=model,
            only_terms=[name for name in there if name not in _OF_GB],
            **choices,
        )
        self.solvent, self._pb_choices = solvent, choices
        self._pb_model = solvent.with_constants(model)
        self._sphere_radii = PBSolute.of(atoms, tan_luo_radii(atoms) if solvent.radii == "tan-luo" else None).radii
        names = super().names
        self._place = names.index("nonpolar") if "nonpolar" in names else len(names)
        self._reaction: PoissonBoltzmann | None = None  # built for the first conformation that fits its grid

    @property
    def names(self) -> tuple[str, ...]:
        names = super().names
        return (*names[: self._place], TERM, *names[self._place :])

    def _described(self) -> dict[str, Any]:
        return {**self._pb_choices, "solvent": self.solvent, "model": self.model}

    def grids(self, conformations: Positions, around: Sequence[Grid] | None = None) -> list[Grid]:
        """Return the grid for each of the conformations (m, n, 3) A.

        around : grids of complexes whose nodes are used; by default a grid is built for each conformation
        """
        own, padding = self.solvent, self.solvent.padding
        solutes = [
            PBSolute(positions, self.atoms.charges, self._sphere_radii)
            for positions in np.asarray(conformations, np.float64)
        ]
        if around is None:
            return [grid_around(solute, own.spacing, padding) for solute in solutes]
        probe = self._pb_model.probe
        return [grid_within(grid, solute, padding, probe) for grid, solute in zip(around, solutes, strict=True)]

    def evaluate_batch(
        self, conformations: ArrayLike, progress: Progress | None = None, *, profile: bool = False,
        errors: Literal["raise", "record"] = "raise", grids: Sequence[Grid] | None = None,
    ) -> EnergyBatch:  # fmt: skip
        """Evaluate conformations (m, n, 3) A as Energy does, and solve the Poisson-Boltzmann equation for each.

        grids : grid for each conformation, by default from `grids`
        """
        return evaluate_together(
            {"": self}, {"": conformations}, progress, profile=profile, errors=errors,
            grids=None if grids is None else {"": grids},
        )[""]  # fmt: skip

    def without_pb(
        self, conformations: ArrayLike, *, profile: bool = False, errors: Literal["raise", "record"] = "raise"
    ) -> EnergyBatch:
        """Evaluate all terms except "pb" for conformations (m, n, 3) A."""
        return super().evaluate_batch(conformations, profile=profile, errors=errors)

    def with_pb(self, batch: EnergyBatch, found: Mapping[int, PBResult], refused: Mapping[int, str]) -> EnergyBatch:
        """Add the reaction field energies to the terms of a batch.

        found : results by conformation; refused : error messages of conformations without a solution
        """
        energies, of_atoms = np.full(len(batch), np.nan), np.full(batch.positions.shape[:2], np.nan)
        for k, result in found.items():
            energies[k], of_atoms[k] = result.energy, result.per_atom
        failed = {**batch.errors, **refused}
        values = np.insert(batch.terms.values, self._place, energies, axis=-1)
        values[list(failed)] = np.nan
        per_atom = batch.per_atom
        if per_atom is not None:
            per_atom = Terms(self.names, np.insert(per_atom.values, self._place, of_atoms, axis=-1))
        return replace(
            batch, terms=Terms(self.names, values), per_atom=per_atom, errors=dict(sorted(failed.items()))
        )  # fmt: skip

    def energy_on_coarse_grid(self, grid: Grid) -> float:
        """Compute the reaction field energy at the initial positions with twice the spacing of a grid, kcal/mol."""
        shape = [(n - 1) // 2 + 1 for n in grid.shape]
        plan = self.plan_on(self.atoms.positions, Grid(grid.origin, 2 * grid.spacing, shape))
        return plan.solve(keep_map=False, grid_error=False).energy

    def conformation(self, positions: Floats, grid: Grid) -> Conformation:
        """Prepare a conformation (n, 3) A on a grid. Raises InputError if it does not fit."""
        if self._reaction is None:
            self._reaction = self.plan_on(positions, grid)
        return Conformation.of(self._reaction, positions, grid)

    def plan_on(self, positions: Floats, grid: Grid) -> PoissonBoltzmann:
        """Build the PoissonBoltzmann plan of a conformation."""
        return PoissonBoltzmann(
            self.atoms.moved(positions), self._pb_model, grids=grid, radii=self._sphere_radii,
            solver=self.solvent.solver, tolerance=self.solvent.tolerance, device=self.device,
        )  # fmt: skip


def evaluate_together(
    plans: Mapping[str, PBEnergy], conformations: Mapping[str, ArrayLike], progress: Progress | None = None, *,
    profile: bool = False, errors: Literal["raise", "record"] = "raise",
    grids: Mapping[str, Sequence[Grid]] | None = None,
) -> dict[str, EnergyBatch]:  # fmt: skip
    """Evaluate conformations of several systems. On a GPU, grids of the same shape share launches.

    plans : plans with the same solvent, by system; conformations : (m, n, 3) A, with equal m for all systems
    grids : grids of the conformations of each system, by default from `PBEnergy.grids`
    """
    batches = {
        name: plan.without_pb(conformations[name], profile=profile, errors=errors) for name, plan in plans.items()
    }
    count = len(next(iter(batches.values())))
    of_systems = grids or {name: plan.grids(batches[name].positions) for name, plan in plans.items()}
    wanted, refused = dict[tuple[int, str], Conformation](), {name: dict[int, str]() for name in plans}
    for k in range(count):
        for name, plan in plans.items():
            if k in batches[name].errors:
                continue
            positions, grid = np.asarray(batches[name].positions[k], np.float64), of_systems[name][k]
            try:
                wanted[k, name] = plan.conformation(positions, grid)
            except InputError as error:
                if errors == "raise":
                    raise InputError(f"conformation {k + 1} of {count}: {error}") from None
                refused[name][k] = str(error)
    keys, stopped = list(wanted), dict[int, str]()
    try:
        results = solve_systems(
            list(wanted.values()), progress=progress, stopped=stopped if errors == "record" else None
        )  # fmt: skip
    except StoppedError as error:
        k, name = keys[error.row]
        raise PeleError(f"conformation {k + 1} of {count}{name and f', {name}'}: {error}") from None
    found: dict[str, dict[int, PBResult]] = {name: {} for name in plans}
    for number, result in results.items():
        k, name = keys[number]
        found[name][k] = result
    for number, why in stopped.items():
        k, name = keys[number]
        refused[name][k] = why
    return {name: plan.with_pb(batches[name], found[name], refused[name]) for name, plan in plans.items()}


def _with_born_radii(atoms: Atoms, model: SolventModel) -> Atoms:
    """Give atoms with too small radii, such as hydrogens of CHARMM's sets, a radius that allows Born radii.

    Born radii are always computed along with the nonpolar term, although LCPO does not use them.
    """
    if atoms.gb_radii is None or not (small := atoms.gb_radii <= model.offset).any():
        return atoms
    return replace(atoms, gb_radii=np.where(small, _SOME_RADIUS, atoms.gb_radii))


def plan_in(pb: PBSolvent | None, atoms: Atoms, model: SolventModel, **choices: Any) -> Energy:
    """Build the plan of a system with Generalized Born, or with a PBSolvent. choices : options of Energy

    Born radii are exact, because binding energies are small differences of large energies.
    """
    if pb is None:
        return Energy(atoms, gradient=False, model=model, born="pairs", **choices)
    return PBEnergy(atoms, pb, model=model, born="pairs", **choices)
