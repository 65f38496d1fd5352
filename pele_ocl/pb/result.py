"""Result of a Poisson-Boltzmann calculation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, Residue
from ..common import arguments
from ..common.errors import InputError, no_attribute
from ..common.inputfile import InputFile
from ..common.notes import with_notes
from ..common.variant import Progress
from ..common.writing import refuse_target
from ..contract import Finding
from ..formats import require_map_suffix, write_map, write_pqr
from ..gb_models.radii_of_models import radii_words
from ..grid import Grid, Map
from ..jobs.facts import composition_as_json, names_of_residues, notes_of
from ..jobs.provenance import Call, provenance, record_head
from ..jobs.texts import duration, forcefield_line, headline
from ..pb_model import PBModel
from ..report import Column, Framed, Report, text_table
from .border import between_nodes


@dataclass(frozen=True, eq=False)
class PBParts:
    """Parts of the energy on a grid, kT, as in APBS's `calcenergy comps`.

    charges_kt : half of the charges times the potential; field_kt : of the field; ions_kt : of the ions
    per_atom_kt : (n,) half of each charge times the interpolated potential; 0 off the grid
    """

    charges_kt: float
    field_kt: float
    ions_kt: float
    per_atom_kt: Floats


@dataclass(frozen=True, eq=False)
class PBLevelResult:
    """Energy on one of the grids of focusing.

    energy_kt : kT, including contributions of previous grids outside of it
    iterations : of the linear solver; corrections : number of restarts
    residual : relative norm for the potential, recomputed in float64
    atoms_off : number of atoms outside of the grid, whose charges are ignored
    parts : of the energy; None if not requested
    """

    grid: Grid
    energy_kt: float
    iterations: int
    corrections: int
    residual: float
    atoms_off: int
    parts: PBParts | None = None


_IN_TABLES = {  # names of errors in tables
    "solver": "solver_error", "grid": "grid_error", "extrapolated": "extrapolated",
    "extrapolation": "extrapolation_error", "shifted": "mean_of_shifted_grids", "shifts": "error_of_shifted_grids",
}  # fmt: skip


@dataclass(frozen=True)
class PBErrors:
    """Errors of an energy, kcal/mol; None if not requested.

    solver : change of the energy in the last correction of the potential, which estimates the error of the solver
    grid : upper estimate of the error from spacing, probe density and boundary, based on coarser grids
        (docs/theory/poisson-boltzmann.md, section 7). It covers 95 % of the errors
    extrapolated : energy extrapolated to a spacing of 0; extrapolation : its difference from the extrapolation of
        coarser grids
    shifts : standard error of the mean over shifted grids, which does not include the error of the spacing
    shifted : mean energy over shifted grids
    """

    solver: float
    grid: float | None = None
    extrapolated: float | None = None
    extrapolation: float | None = None
    shifted: float | None = None
    shifts: float | None = None


@dataclass(frozen=True, eq=False)
class PBResult(Framed):
    """Energy and potential of a molecule in salt water.

    energy : kcal/mol; energy of the reaction field, which is the solvation energy; if `reaction` is False, energy of
        all charges, including self energies
    energy_kt : kT; energy_kj : kJ/mol, as printed by APBS
    reaction : whether the charges' own potential is excluded
    potentials : (n,) kT/e at the atoms, of the reaction field, or complete if `reaction` is False; NaN outside of the
        grid
    per_atom : (n,) kcal/mol, half of each charge times its potential; the sum is the energy of the linear equation
    map : potential at the nodes of the finest grid, kT/e; None if not requested
    levels : results for each grid, the coarsest first
    errors : of the energy
    seconds : "surface", "equation", "solver", "errors", "total"
    alone : result for the same charges and grid in a medium with the solute's dielectric, for `solvation` if `reaction`
        is False; None if not computed
    source : the file of the structure, None if atoms were given; findings : problems found in the structure
    with_residues : whether text, table and `to_json` show the contributions of residues
    heard : notes reported during the computation; call : function that returns facts about the call to store in files
    scenes : files of scenes

    >>> result = pele_ocl.pb("data/structures/trialanine.pdb", spacing=1.5)
    >>> result.potentials.shape, result.solvation < 0
    ((33,), True)
    >>> result.save("potential.dx")
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
    alone: PBResult | None = None
    source: InputFile | None = None
    findings: tuple[Finding, ...] = ()
    with_residues: bool = False
    heard: tuple[str, ...] = field(default=(), repr=False)
    call: Call | None = field(default=None, repr=False)
    scenes: tuple[Path, ...] = ()

    def compute_map_by(self, compute: Callable[[], Map]) -> None:
        """Set the function that computes the map when it is first needed."""
        vars(self).pop("map", None)
        vars(self)["_compute_map"] = compute

    def __getattr__(self, name: str) -> Map:
        if name != "map" or "_compute_map" not in vars(self):
            raise no_attribute(f"{type(self).__name__!r} object", name, {*dir(type(self)), *vars(self)})
        found: Map = vars(self).pop("_compute_map")()
        vars(self)["map"] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"map": self.map, **{name: value for name, value in vars(self).items() if name != "_compute_map"}}

    def __repr__(self) -> str:
        model = self.model
        salt = f"{model.ionic_strength:g} mol/L salt" if model.has_salt else "no salt"
        by = f"dielectrics {model.solute_dielectric:g} and {model.solvent_dielectric:g}, {salt}, {self.solver}"
        if self.alone is not None:
            return f"PBResult({len(self.atoms):,} atoms, solvation energy {self.solvation:.3f} kcal/mol, {by})"
        what = "solvation energy" if self.reaction else "energy including self energies of the charges,"
        grid = "" if self.errors.grid is None else f" (grid error at most about {self.errors.grid:.3g})"
        return f"PBResult({len(self.atoms):,} atoms, {what} {self.energy:.3f} kcal/mol{grid}, {by})"

    @property
    def energy(self) -> float:
        """Energy, kcal/mol."""
        return self.energy_kt * self.model.kcal_per_kt

    @property
    def total(self) -> float:
        """Energy, kcal/mol; same as `energy`."""
        return self.energy

    @property
    def solvation(self) -> float:
        """Solvation energy from a medium with the solute's dielectric, kcal/mol; equals `energy` without `alone`."""
        return self.energy if self.alone is None else self.energy - self.alone.energy

    @property
    def _has_self_energies(self) -> bool:
        """Whether `solvation` includes self energies of the charges."""
        return not self.reaction and self.alone is None

    @property
    def shares(self) -> Floats:
        """Contribution of each atom to the solvation energy, (n,) kcal/mol."""
        return self.per_atom if self.alone is None else self.per_atom - self.alone.per_atom

    @property
    def energy_kj(self) -> float:
        """Energy, kJ/mol."""
        return self.energy_kt * self.model.kj_per_kt

    @property
    def per_atom(self) -> Floats:
        """Half of each charge times its potential, (n,) kcal/mol; 0 for atoms outside of the grid."""
        energies: Floats = 0.5 * self.model.kcal_per_kt * self.atoms.charges * np.nan_to_num(self.potentials)
        return energies

    @property
    def iterations(self) -> int:
        """Total number of iterations of the linear solver on all grids."""
        return sum(level.iterations for level in self.levels)

    def per_residue(self) -> dict[Residue, float]:
        """Return the sums of `per_atom` over residues, kcal/mol. Raises InputError if the atoms have no labels."""
        if self.atoms.labels is None:
            raise InputError("energies per residue need atoms with labels; these have none")
        labels = self.atoms.labels
        sums = np.add.reduceat(self.per_atom, labels.residue_starts)
        return dict(zip(labels.residues, sums.tolist(), strict=True))

    def residue_shares(self) -> dict[str, float]:
        """Return the contribution of each residue to the solvation energy, kcal/mol, by name.

        Raises InputError if the atoms have no labels.
        """
        labels = self.atoms.labels
        if labels is None:
            raise InputError("`per_residue` needs residues; these atoms have no labels")
        sums = np.add.reduceat(self.shares, labels.residue_starts).tolist()
        return dict(zip(names_of_residues(self.atoms), sums, strict=True))

    def table(self) -> Report:
        """Return a table of the solvation energy and its known errors, or of residues if `with_residues` is True.

        If `reaction` is False and `alone` is None, the table contains the energy of all charges instead.
        """
        grid = self.levels[-1].grid
        facts = {
            "energy": self.solvation, "shape": list(grid.shape), "spacing": grid.spacing.tolist(),
            "errors": _known(self.errors), "settings": self.settings, "device": self.device,
        }  # fmt: skip
        title, name = "Poisson-Boltzmann solvation energy", "solvation"
        if self._has_self_energies:
            title, name = "Poisson-Boltzmann energy, including self energies of the charges", "energy"
        if self.with_residues:
            title, kind, of = f"{title}, {self.solvation:,.3f} kcal/mol, by residue", "residue", self.residue_shares()
        else:
            errors = {_IN_TABLES[error]: value for error, value in _known(self.errors).items()}
            kind, of = "term", {name: self.solvation, **errors}
        columns = {
            kind: Column(list(of), names=not self.with_residues),
            "energy": Column(list(of.values()), "kcal/mol", ",.3f" if self.with_residues else ",.6g"),
        }
        return Report(title, columns, facts, about=self._physics())

    @property
    def settings(self) -> dict[str, Any]:
        """All constants by name."""
        return model_facts(self.model) | {"forcefield": self.atoms.forcefield, "radii_set": self.atoms.gb_radii_set}

    def _physics(self) -> list[str]:
        """Return lines with the force field, the grid and the solvent."""
        grid, model = self.levels[-1].grid, self.model
        shape = " x ".join(map(str, grid.shape))
        spacing = " x ".join(f"{h:.3g}" for h in dict.fromkeys(grid.spacing.tolist()))
        salt = f"{model.ionic_strength:g} mol/L salt, Debye length {model.debye_length:.2f} A"
        return [
            *([forcefield_line(self.atoms.forcefield)] if self.atoms.forcefield else []),
            f"Grid of {shape} points, {spacing} A; surface {model.surface}, "
            f"radii {radii_words(self.atoms.gb_radii_set)}, dielectrics {model.solute_dielectric:g} and "
            f"{model.solvent_dielectric:g}, {salt if model.has_salt else 'no salt'}, "
            f"{'nonlinear' if model.is_nonlinear else 'linear'} equation",
        ]

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the text that the command prints. verbose : include the grid; total : total seconds to report"""
        grid, model, seconds = self.levels[-1].grid, self.model, self.seconds
        lines = [
            headline(self.source, self.atoms),
            *self._physics(),
            "",
            f"{'Energy' if self._has_self_energies else 'Solvation energy':<19} {self.solvation:14,.3f} kcal/mol"
            + (", including self energies of the charges" if self._has_self_energies else ""),
            *self._error_lines(),
        ]
        if self.with_residues:
            rows = [(name, f"{share:.3f}") for name, share in self.residue_shares().items()]
            lines += ["", text_table(("residue", "kcal/mol"), rows, "<>")]
        lines += [
            "",
            f"{self.solver}, {self.iterations} iterations to a residual of {self.levels[-1].residual:.1e}, "
            f"on {self.device}: surface {duration(seconds['surface'])}, solver {duration(seconds['solver'])}, "
            f"total {duration(seconds['total'] if total is None else total)}",
        ]
        if verbose:
            low, high = (", ".join(f"{x:.3f}" for x in end) for end in (grid.origin, grid.last))
            how = f"boundary {model.boundary}, charges {model.charges}, probe {model.probe:g} A"
            lines += ["", f"Grid from ({low}) to ({high}) A; {how}"]
        return "\n".join(lines)

    def _error_lines(self) -> list[str]:
        """Return a line for each known error."""
        errors = self.errors
        solver = f"{errors.solver:14,.3g} change of the energy by the last correction of the solver"
        lines = [f"  {'solver':<17} {solver}"]
        if errors.grid is not None:
            lines.append(f"  {'grid':<17} {errors.grid:14,.3f} an upper estimate, from the change on coarser grids")
        elif self.alone is not None:
            way = "compare with a smaller `spacing`, or leave out `like='apbs'`"
            lines.append(f"  {'grid':<17} {'unknown':>14} not estimated as APBS computes; {way}")
        if errors.extrapolated is not None and errors.extrapolation is not None:
            to = f"to a spacing of 0, +- {errors.extrapolation:.3f}"
            lines.append(f"  {'extrapolated':<17} {errors.extrapolated:14,.3f} {to}")
        if errors.shifted is not None:
            spread = f", +- {errors.shifts:.3f}, which is not an estimate of the grid error"
            mean = f"mean{'' if errors.shifts is None else spread}"
            lines.append(f"  {'shifted grids':<17} {errors.shifted:14,.3f} {mean}")
        if self.alone is not None:
            both = f"{self.energy_kj:,.3f} minus {self.alone.energy_kj:,.3f} kJ/mol"
            lines.append(f"  as computed by APBS: {both}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return a JSON record of the energy."""
        grid, model = self.levels[-1].grid, self.model
        record = {
            **record_head(self.source),
            "n_atoms": len(self.atoms),
            "composition": composition_as_json(self.atoms),
            "energy": {"solvation": self.solvation, "total": self.solvation},
            "errors": _known(self.errors),
            "shape": list(grid.shape),
            "origin": grid.origin.tolist(),
            "spacing": grid.spacing.tolist(),
            "iterations": self.iterations,
            "residual": self.levels[-1].residual,
            "debye_length": model.debye_length if model.has_salt else None,
            "settings": self.settings,
            "device": self.device,
            "variant": self.solver,
            "seconds": dict(self.seconds),
        }
        if self.with_residues:
            record["residues"] = [{"residue": name, "total": share} for name, share in self.residue_shares().items()]
        found = {**record, **notes_of(self.atoms), "findings": [finding.as_json() for finding in self.findings]}
        return with_notes(found, self.heard)

    def save(
        self, path: str | PathLike[str], *, inputs: Iterable[str | PathLike[str]] = (), progress: Progress | None = None
    ) -> None:
        """Write the potential, kT/e, as a map (.dx, .mrc, .cube, .h5 or others), or the atoms as .pqr.

        inputs : files that must not be overwritten; progress : called with the fraction written, 0 to 1

        Raises InputError if the result has no map, and FormatError for another suffix.
        """
        own = [] if self.source is None else [self.source]
        if arguments.file_path(path).suffix.lower() == ".pqr":
            refuse_target(path, [*own, *inputs])
            write_pqr(path, self.atoms)
            return
        require_map_suffix(path)
        if self.map is None:
            raise InputError("the map was not stored; request it with `keep_map=True`")
        attributes = provenance(self.source, self.call)
        write_map(path, self.map, atoms=self.atoms, attributes=attributes, inputs=[*own, *inputs], progress=progress)

    def potential_at(self, points: ArrayLike) -> Floats:
        """Interpolate the potential at points from the map, (m,) kT/e; NaN outside of the grid.

        points : (m, 3) A

        Raises InputError if the result has no map.
        """
        if self.map is None:
            raise InputError("potentials at points need the map; request it with keep_map=True")
        wanted = arguments.positions_of(points, "points")
        return between_nodes(np.asarray(self.map.values, np.float64), self.map.grid, wanted)


def model_facts(model: PBModel) -> dict[str, Any]:
    """Return the constants of a model by name, in JSON form, including the ionic strength, mol/L."""
    return {**vars(model), "ions": [vars(ion) for ion in model.ions], "ionic_strength": model.ionic_strength}


def _known(errors: PBErrors) -> dict[str, float]:
    """Return the errors that were requested."""
    return {name: value for name, value in vars(errors).items() if value is not None}
