"""Result of a Poisson-Boltzmann calculation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, Residue
from ..common import arguments
from ..common.errors import InputError
from ..grid import Grid, Map
from ..pb_model import PBModel
from .border import between_nodes


@dataclass(frozen=True, eq=False)
class PBParts:
    """Parts of the energy on a grid, kT, as APBS's `calcenergy comps` has them.

    charges_kt : half of the charges times the potential; field_kt : of the field; ions_kt : of the ions
    per_atom_kt : (n,) half of each charge times the potential between the eight nodes around it; 0 off the grid
    """

    charges_kt: float
    field_kt: float
    ions_kt: float
    per_atom_kt: Floats


@dataclass(frozen=True, eq=False)
class PBLevelResult:
    """Grid of focusing, with the energy that is known once it is solved.

    energy_kt : kT, with what the grids before it have outside of it
    iterations : of the linear solver; corrections : how often they were begun anew
    residual : relative, by norm, of the potential, computed anew in wide numbers
    atoms_off : atoms that do not lie inside the grid, which have no charge there
    parts : of the energy; None if they were not asked for
    """

    grid: Grid
    energy_kt: float
    iterations: int
    corrections: int
    residual: float
    atoms_off: int
    parts: PBParts | None = None


@dataclass(frozen=True)
class PBErrors:
    """Errors of an energy, kcal/mol; None where one was not asked for.

    solver : what the last correction of the potential changed
    grid : upper estimate of the error of the spacing, of the probes' density and of the border, from the changes that
        coarser grids make (docs/theory/poisson-boltzmann.md, section 7). It covers nineteen errors of twenty
    extrapolated : energy for a spacing of 0, and `extrapolation`, its difference from the next pair of grids
    shifts : standard error of the mean over shifted grids, which says nothing of the error of the spacing
    shifted : the mean itself
    """

    solver: float
    grid: float | None = None
    extrapolated: float | None = None
    extrapolation: float | None = None
    shifted: float | None = None
    shifts: float | None = None


@dataclass(frozen=True, eq=False)
class PBResult:
    """Energy and potential of a molecule in salt water, and how they were computed.

    energy : kcal/mol; of the reaction field, or if `reaction` is False of all charges, self energies included
    energy_kt : kT; energy_kj : kJ/mol, as APBS prints it
    reaction : whether the charges' own potential was left out
    potentials : (n,) kT/e at the atoms, of the reaction field or if `reaction` is False of all; NaN off the grid
    per_atom : (n,) kcal/mol, half of each charge times its potential; they add up to the energy of the linear equation
    map : potential at the nodes of the finest grid, kT/e; None where it was not asked for
    levels : of each grid, the coarsest first
    errors : of the energy
    seconds : "surface", "equation", "solver", "errors", "total"
    """

    atoms: Atoms
    model: PBModel
    reaction: bool
    energy_kt: float
    potentials: Floats
    map: Map | None
    levels: tuple[PBLevelResult, ...]
    errors: PBErrors
    solver: str
    device: str
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        what = "reaction energy" if self.reaction else "energy"
        grid = "" if self.errors.grid is None else f" (grid error at most about {self.errors.grid:.3g})"
        return f"PBResult({len(self.atoms):,} atoms, {what} {self.energy:.3f} kcal/mol{grid}, {self.solver})"

    @property
    def energy(self) -> float:
        """Energy, kcal/mol."""
        return self.energy_kt * self.model.kcal_per_kt

    @property
    def energy_kj(self) -> float:
        """Energy, kJ/mol."""
        return self.energy_kt * self.model.kj_per_kt

    @property
    def per_atom(self) -> Floats:
        """Half of each charge times its potential, (n,) kcal/mol; 0 for atoms off the grid."""
        energies: Floats = 0.5 * self.model.kcal_per_kt * self.atoms.charges * np.nan_to_num(self.potentials)
        return energies

    @property
    def iterations(self) -> int:
        """Iterations of the linear solver, on all grids."""
        return sum(level.iterations for level in self.levels)

    def per_residue(self) -> dict[Residue, float]:
        """Sums of `per_atom` over the residues, kcal/mol. Raises InputError where the atoms have no labels."""
        if self.atoms.labels is None:
            raise InputError("energies per residue need atoms with labels; these have none")
        labels = self.atoms.labels
        sums = np.add.reduceat(self.per_atom, labels.residue_starts)
        return dict(zip(labels.residues, sums.tolist(), strict=True))

    def potential_at(self, points: ArrayLike) -> Floats:
        """Potential at points, (m,) kT/e, between the nodes of the map; NaN off the grid.

        points : (m, 3) A

        Raises InputError where the result has no map.
        """
        if self.map is None:
            raise InputError("potentials at points need the map; ask for it with keep_map=True")
        wanted = arguments.positions_of(points, "points")
        return between_nodes(np.asarray(self.map.values, np.float64), self.map.grid, wanted)
