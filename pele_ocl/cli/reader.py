"""Options that choose atoms, and the reading of a structure by all options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias

import click
import numpy as np

from ..atoms import Atoms, Floats, Taken, selectable
from ..atoms.lcpo import lcpo_notes
from ..atoms.selection import Composition, Selection
from ..common.errors import InputError
from ..common.inputfile import InputFile, read_file
from ..forcefield import ForceField
from ..formats import (
    brings_parameters,
    is_structure,
    is_topology,
    read_structure_or_atoms,
    read_topology,
    structure_format,
)
from ..formats.amber import is_netcdf
from ..gb_models.solvent_model import SolventModel
from ..ligand import Hydrogens
from ..reading import FILE, Coordinates, read_chosen
from .command import remember_coordinates
from .report import counted
from .terminal import note

Chosen: TypeAlias = tuple[Atoms, Taken | None]

_KINDS = {"protein": "protein", "nucleic": "nucleic", "ligand": "ligand", "ion": "ion", "ions": "ion", "water": "water"}


def choice_options() -> list[Callable[..., Callable[..., object]]]:
    """List the options `select`, `without` and `only`, which selection_of puts together."""
    return [
        click.option(
            "--select",
            metavar="EXPR",
            help="Atoms to take, in the words of MDAnalysis and VMD: 'protein and not resname NAP', or a mask of "
            "AMBER: ':1-50@CA'. Other atoms need no parameters.",
        ),
        click.option(
            "--without",
            metavar="NAMES",
            help="Leave out residues by name, such as HOH,NAP, or by kind: water, ion, ligand.",
        ),
        click.option("--only", metavar="KINDS", help="Take only these kinds: protein, nucleic, ligand, ion, water."),
    ]


def selection_of(select: str | None, without: str | None, only: str | None) -> Selection | None:
    """One selection of what the three options say, None where none is given.

    Raises InputError, before any file is read, for a text that is no selection.
    """
    parts = []
    if select is not None:
        parts.append(select)
    if without is not None:
        parts.append(
            f"not ({' or '.join(_KINDS.get(name) or _residue(name) for name in _split('--without', without))})"
        )
    if only is not None:
        kinds = _split("--only", only)
        unknown = next((kind for kind in kinds if kind not in _KINDS), None)
        if unknown is not None:
            raise click.UsageError(f"--only {only}: there is no kind {unknown!r}; choose of {', '.join(_KINDS)}")
        parts.append(" or ".join(_KINDS[kind] for kind in kinds))
    text = " and ".join(parts if len(parts) == 1 else [f"({part})" for part in parts])
    return Selection(text) if text else None


def _split(option: str, names: str) -> list[str]:
    """Split the names between commas."""
    found = [name.strip() for name in names.split(",")]
    if not all(found):
        raise click.UsageError(f"{option} {names} lacks a name before or behind a comma")
    return found


def _residue(name: str) -> str:
    """Write the selection of a residue name; * and ? match any letters."""
    if set(name) & set('()" '):
        raise click.UsageError(f"--without {name}: names of residues are needed, without blanks and parentheses")
    return f"resname {name}" if any(c in name for c in "*?") else f'resname "{name}"'


LARGE_FILE = 20_000_000  # bytes that take more than two seconds to read


class FirstFrame(Protocol):
    """Trajectory that a command was given, whose first frame has the positions of a topology; it may have no paths."""

    @property
    def paths(self) -> tuple[Path, ...]: ...

    def first_positions(self, atoms: Atoms, selection: Selection | None) -> tuple[Floats, str]: ...


@dataclass(frozen=True, kw_only=True)
class StructureReader:
    """Reader of structures by the options about structure and parameters.

    structures : the files that the command was given
    coordinates : of all topologies among them, or one of each, in their order; other files have positions of their own
    selection : of all three options that choose atoms; gb, like : of the solvent, None if the command has none
    lcpo : rule of LCPO surfaces, to say which atoms take the parameters of carbon; "" without them
    trajectory : None if the command takes none
    ligand_file, ligand_forcefield, ligand_charges, ligand_hydrogens : ligands, and the parameters of those without
    """

    structures: tuple[Path, ...]
    coordinates: tuple[Path, ...]
    parameters: tuple[Path, ...]
    model: int | None
    forcefield: str | None
    radii: str | None
    templates: tuple[Path, ...]
    obc: tuple[Path, ...]
    pele_data: tuple[Path, ...]
    fallback: bool
    allow_missing_terminals: bool
    allow_scripts: bool
    selection: Selection | None
    gb: str | None
    like: str | None
    lcpo: str
    trajectory: FirstFrame | None
    ligand_file: tuple[Path, ...] = ()
    ligand_forcefield: str = "gaff2"
    ligand_charges: str = "gas"
    ligand_hydrogens: Hydrogens = "given"
    _told: set[str] = field(default_factory=set, init=False)
    _of_frames: list[str] = field(default_factory=list, init=False)  # notes about the first frame

    def __getstate__(self) -> dict[str, object]:
        """Give the fields: what was loaded by them is loaded anew elsewhere. Coordinates alone need all structures."""
        structures = self.structures if self.coordinates else self.structures[:2]  # there may be thousands
        return {of.name: getattr(self, of.name) for of in fields(self)} | {"structures": structures}

    def __call__(self, source: InputFile, number: int | None = None) -> Atoms:
        """Read the chosen atoms of a file; parameters as of `chosen`."""
        return self.chosen(source, number)[0]

    def chosen(self, source: InputFile, number: int | None = None) -> Chosen:
        """Read the chosen atoms of a file, and tell which of the file they are, None if all were taken.

        number : of the model, by default of --model
        """
        if None not in (self.model, number):
            raise click.UsageError("choose one of --model and --models")
        if self.coordinates and number is not None:
            raise click.UsageError("--models all reads the models of a PDB file; leave out --coordinates")
        self._tell(f"Reading {source}" if len(source.data) > LARGE_FILE else "")
        has_own = brings_parameters(source.path)
        if has_own:
            self._refuse_parameters(source.path)
        atoms, taken = read_chosen(
            source, None if has_own else self._forcefield, self.model if number is None else number,
            self._positions(source), self.parameters, select=self.selection,
            radii=self.radii if has_own or self.radii == FILE else None, ligands=self.ligand_file,
            ligand_forcefield=self.ligand_forcefield, ligand_charges=self.ligand_charges,
            ligand_hydrogens=self.ligand_hydrogens,
        )  # fmt: skip
        if self.gb is not None:
            atoms = SolventModel.like(self.like or "exact", gb=self.gb).choose_radii(atoms)
        if self._of_frames:
            atoms = replace(atoms, notes=(*atoms.notes, *self._of_frames))
        if self.lcpo:
            atoms = replace(atoms, notes=(*atoms.notes, *lcpo_notes(atoms, self.lcpo)))
        atoms = self._noted(source, atoms)
        return atoms, taken

    def of_frames(self, source: InputFile, trajectory: FirstFrame) -> Atoms:
        """Read all atoms of another file than IN; a topology takes the positions of the first of its own frames."""
        own = replace(
            self, structures=(source.path,), coordinates=(), model=None, selection=None, trajectory=trajectory
        )
        return own(source)

    def unparameterised(self, source: InputFile, whole: bool = False) -> Atoms:
        """Read the chosen atoms of a file with their names and positions, and no parameters: charges are 0.

        whole : whether all atoms are read, of a file that others are found in
        """
        positions = self._coordinates_of(source.path)
        parameters = () if positions is None else self.parameters
        found = read_structure_or_atoms(source, self.model, positions, parameters)
        bonds = found.bonds if isinstance(found, Atoms) else np.empty((0, 2), np.int32)
        atoms = Atoms(found.positions, np.zeros(len(found.positions)), labels=found.labels, bonds=bonds)
        if self.selection is not None and not whole:
            atoms = atoms[self.selection.mask(selectable(atoms))]
        atoms = self._noted(source, atoms)
        return atoms

    def require_forcefield(self) -> None:
        """Load the force field where a structure needs one. Raises as ForceField.load."""
        structures = (path for path in self.structures if is_structure(path) and not path.is_dir())
        if not all(map(brings_parameters, structures)):
            assert self._forcefield is not None

    @property
    def loaded_forcefield(self) -> ForceField:
        """Force field of files that bring no parameters."""
        return self._forcefield

    @cached_property
    def _forcefield(self) -> ForceField:
        """Force field of files that bring no parameters."""
        radii = None if self.radii == FILE else self.radii
        return ForceField.load(
            self.forcefield, radii, self.templates, self.obc, self.pele_data, self.fallback,
            self.allow_missing_terminals, self.allow_scripts,
        )  # fmt: skip

    def _refuse_parameters(self, path: Path) -> None:
        """Raise InputError for options about parameters, which a file that brings them would have no use for."""
        form = structure_format(path)
        follow_from_bonds = self.radii in (None, FILE, "bondi") or form.has_bonds
        options = {
            "--forcefield": self.forcefield, "--radii": None if follow_from_bonds else self.radii,
            "--templates": self.templates, "--obc": self.obc, "--pele-data": self.pele_data,
            "--fallback": self.fallback,
        }  # fmt: skip
        given = [name for name, value in options.items() if value]
        if given:
            raise InputError(f"{path}: {form.kind} brings its own charges and radii; leave out {', '.join(given)}")

    def _positions(self, source: InputFile) -> Coordinates:
        """Find the file of the positions of a topology, or read the first frame."""
        if not self.coordinates and self.trajectory is not None and self.trajectory.paths and is_topology(source.path):
            whole = read_topology(source, self.parameters).parameters
            positions, stripped = self.trajectory.first_positions(whole, self.selection)
            self._of_frames[:] = [stripped] if stripped else []
            return positions
        found = self._coordinates_of(source.path)
        remember_coordinates(found)
        return found

    def _coordinates_of(self, structure: Path) -> InputFile | Path | None:
        """Find the file of --coordinates that belongs to a structure; what all share is read once."""
        if self._topologies and not is_topology(structure):
            return None
        if len(self.coordinates) <= 1 or not self._topologies:
            return self._shared_coordinates
        if len(self.coordinates) != len(self._topologies):
            topologies = counted(len(self._topologies), "topology file")
            raise click.UsageError(
                f"--coordinates is given {len(self.coordinates)} times for {topologies}; give one for all, or for each"
            )
        if self._topologies.count(structure) > 1:
            raise click.UsageError(
                f"{structure} is given twice; give it once, and its positions as a trajectory, by -t"
            )
        return opened_coordinates(self.coordinates[self._topologies.index(structure)])

    @cached_property
    def _topologies(self) -> tuple[Path, ...]:
        """Structures without positions of their own."""
        return tuple(path for path in self.structures if not path.is_dir() and is_topology(path))

    @cached_property
    def _shared_coordinates(self) -> InputFile | Path | None:
        return opened_coordinates(self.coordinates[0]) if self.coordinates else None

    def _noted(self, source: InputFile, atoms: Atoms) -> Atoms:
        """Add all sentences about atoms to their notes, and tell them."""
        held = Composition.of(atoms.labels).solvent_sentence()
        more = [f"{source}: {held}"] if held else []
        for sentence in (*atoms.notes, *more):
            self._tell(f"Note: {sentence}")
        return replace(atoms, notes=(*atoms.notes, *more)) if more else atoms

    def _tell(self, sentence: str) -> None:
        """Say it on stderr, once."""
        if sentence and sentence not in self._told:
            self._told.add(sentence)
            note(sentence)


def opened_coordinates(path: Path) -> InputFile | Path:
    """A file of positions, which is read once, but for a long trajectory's."""
    return path if is_netcdf(path) and path.stat().st_size > LARGE_FILE else read_file(path)
