"""Reading: the options for reading files in functions and commands, and the molecules read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from ..atoms import Atoms, Floats, selectable
from ..atoms.lcpo import lcpo_notes
from ..atoms.radii import goes_by_names
from ..atoms.selection import Composition
from ..common import arguments
from ..common.errors import InputError, KeywordError, ParameterError, PeleError
from ..common.indices import selection_text
from ..common.inputfile import InputFile, read_file
from ..common.notes import Note, note
from ..formats import (
    brings_parameters,
    is_structure,
    is_topology,
    read_conformations,
    read_structure_or_atoms,
    read_topology,
    structure_format,
    structure_suffix,
)
from ..gb_models.solvent_model import SolventModel
from ..ligand.settings import ADDED_HYDROGENS
from .choosing import selection_of
from .files import FILE, Coordinates, LigandGiven, read_chosen, template_of_ligand, template_of_residue

if TYPE_CHECKING:
    from ..atoms import Taken
    from ..atoms.selection import Selection
    from ..forcefield import ForceField
    from ..ligand import Hydrogens, LigandTemplate

T = TypeVar("T")
Chosen: TypeAlias = "tuple[Atoms, Taken | None]"
Models = Literal["one", "all"]
Files: TypeAlias = str | PathLike[str] | tuple[str | PathLike[str], ...] | list[str | PathLike[str]] | None

LARGE_FILE = 20_000_000  # bytes; reading takes more than two seconds


@runtime_checkable
class FirstFrame(Protocol):
    """Interface of a trajectory whose first frame may provide the positions of a topology."""

    @property
    def paths(self) -> tuple[object, ...]: ...

    def first_positions(self, atoms: Atoms, selection: Selection | None) -> tuple[Floats, str]: ...


@dataclass(frozen=True, eq=False)
class MoleculeRead:
    """A molecule read from a file.

    source : the file
    atoms : Atoms of the requested model, or of the first usable one
    numbers : model numbers in the order of the file; empty if a single model was requested
    conformations : (m, n, 3) A, positions of each model in `numbers`; NaN for unusable models
    chosen : selected atoms of the file, None for all
    failed : errors of unusable models, by index from 0
    coordinates : file with the positions of a topology; None if they are in `source` or a trajectory
    """

    source: InputFile
    atoms: Atoms
    numbers: list[int] = field(default_factory=list)
    conformations: Floats | None = None
    chosen: Taken | None = None
    failed: Mapping[int, str] = field(default_factory=dict)
    coordinates: InputFile | Path | None = None

    @property
    def taken(self) -> Taken:
        """Selected atoms of the file, also if all are selected."""
        from ..atoms import Taken

        return self.chosen or Taken(np.ones(len(self.atoms), np.bool_), self.atoms.labels)

    def models(self) -> Iterator[tuple[int, Atoms]]:
        """Yield the index and the Atoms of each usable model."""
        assert self.conformations is not None
        for place, positions in enumerate(self.conformations):
            if place not in self.failed:
                yield place, self.atoms.moved(positions)

    def without(self, failed: Mapping[int, str]) -> MoleculeRead:
        """Mark further models as unusable. Raises InputError if none is left."""
        assert self.conformations is not None
        every = dict(sorted({**self.failed, **failed}.items()))
        left = next((place for place in range(len(self.numbers)) if place not in every), None)
        if left is None:
            raise InputError(
                f"{self.source}: none of its {len(self.numbers):,} models can be computed; model {self.numbers[0]}: "
                f"{every[0].removeprefix(f'{self.source}: ')}"
            )
        conformations = self.conformations.copy()
        conformations[list(every)] = np.nan
        atoms = self.atoms.moved(conformations[left])
        return replace(self, atoms=atoms, conformations=conformations, failed=every)


@dataclass(frozen=True)
class Reading:
    """Options for reading molecules from files. It is picklable, and loads data once per process.

    forcefield : a ForceField, or a name for ForceField.load, for files without parameters; by default Amber99SB. Files
        with parameters accept neither this nor `templates`, `obc`, `pele_data` and `guess_radii`
    select : atoms to read, such as `protein and not resname NAP` (docs/selection.md); by default all
    model : number of the model in a file with several; by default the first
    coordinates : file with the positions of a topology; for several topologies, one file for all or one for each in the
        order of `structures`
    parameters : CHARMM parameter files, for a .psf
    radii : set of GB radii, which no SolventModel replaces; by default those of the file or of the GB model
    without, only : names or kinds of residues to leave out, and kinds to read, separated by commas: "HOH,NAP",
        "protein,ligand"
    templates, obc, pele_data, guess_radii, allow_missing_terminals, allow_scripts : as in ForceField.load
    ligands : molecules to add as in pele_ocl.read, with the options `ligand_forcefield`, `ligand_charges`,
        `ligand_hydrogens` and `ligand_ph`
    ligand_template : SMILES or PDB component codes of residues, as in pele_ocl.read
    solvent : a SolventModel that chooses the radii when reading; by default they are chosen later
    structures : all files to read, needed if there are several `coordinates`
    trajectory : trajectory whose first frame provides the positions of a topology without `coordinates`

    Notes are reported once and are also in `Atoms.notes`.
    """

    forcefield: ForceField | str | Sequence[str] | None = None
    select: str | None = None
    model: int | None = None
    coordinates: Files = ()
    parameters: Files = ()
    radii: str | None = None
    without: str | None = None
    only: str | None = None
    templates: Files = ()
    obc: Files = ()
    pele_data: Files = ()
    guess_radii: bool = False
    allow_missing_terminals: bool = True
    allow_scripts: bool = False
    ligands: tuple[LigandGiven, ...] = ()
    ligand_forcefield: str = "gaff2"
    ligand_charges: str = "mmff"
    ligand_hydrogens: Hydrogens = "given"
    ligand_ph: float | None = None
    ligand_template: tuple[str, ...] | str = ()
    solvent: SolventModel | None = None
    structures: tuple[Path, ...] = field(default=(), repr=False)
    trajectory: FirstFrame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("coordinates", "parameters", "templates", "obc", "pele_data"):
            object.__setattr__(self, name, _paths(name, getattr(self, name)))
        object.__setattr__(self, "ligands", arguments.listed_ligands(self.ligands))
        if self.select is not None:
            object.__setattr__(self, "select", selection_text("select", self.select))
        selection_of(self.select, self.without, self.only)  # raises errors before any file is read

    def __getstate__(self) -> dict[str, object]:
        """Return the fields without loaded data. Structures are included only if coordinates need them."""
        structures = self.structures if self.coordinates else ()  # there may be thousands
        return {of.name: getattr(self, of.name) for of in fields(self)} | {"structures": structures}

    def __call__(self, source: InputFile, number: int | None = None, /) -> Atoms:
        """Read the selected atoms of a file; arguments as in `one`."""
        return self.one(source, number).atoms

    def chosen(self, source: InputFile, number: int | None = None, /) -> Chosen:
        """Read the selected atoms of a file. Also returns the selection, None for all."""
        found = self.one(source, number)
        return found.atoms, found.chosen

    @property
    def files(self) -> list[Path]:
        """Given files, except those of the molecules themselves, and without folders."""
        kinds = ("coordinates", "parameters", "templates", "obc", "pele_data")
        given = [path for name in kinds for path in self._files(name)]
        given += [Path(of) for of in self.ligands if isinstance(of, str | PathLike)]
        return list(filter(os.path.isfile, given))

    @property
    def is_whole(self) -> bool:
        """True if exactly the atoms of the first model are read, without selection and ligands."""
        return self._selection is None and self.model is None and not self.ligands

    def with_molecules(self, molecules: Iterable[Any], read: Callable[[Reading], T]) -> T:
        """Read a complex whose residues without a template may match one of several molecules, such as poses.

        Such residues get the parameters of the first matching molecule and keep their positions, with a note.

        molecules : files, Ligands or RDKit Mols, tried in order; read : function that reads the complex with a Reading

        Raises the last ParameterError if no molecule matches.
        """
        try:
            return read(self)
        except ParameterError as error:
            why = error
        for path in molecules:
            try:
                return read(replace(self, ligands=(*self.ligands, path)))
            except ParameterError as error:  # no match, or another unknown residue
                why = error
            except PeleError:  # the molecule cannot be parametrized
                continue
        raise why

    def one(self, source: InputFile, number: int | None = None, /) -> MoleculeRead:
        """Read the selected atoms of a model.

        number : number of the model, by default `model`

        Raises FormatError and ParameterError like pele_ocl.read, and InputError for force-field options with a file
        that contains parameters.
        """
        if number is not None:
            self._require_all()
        self._tell(f"Reading {source}" if len(source.data) > LARGE_FILE else "")
        has_own = brings_parameters(source)
        if has_own:
            self._refuse_parameters(source)
        positions, file, stripped = self._positions(source)
        goes_with_atoms = has_own or self.radii == FILE or goes_by_names(self.radii)
        atoms, taken = read_chosen(
            source, None if has_own else self.loaded_forcefield, self.model if number is None else number, positions,
            self._files("parameters"), select=self._selection,
            radii=self.radii if goes_with_atoms else None, ligands=self.ligands,
            ligand_forcefield=self.ligand_forcefield, ligand_charges=self.ligand_charges,
            ligand_hydrogens=self.ligand_hydrogens, ligand_ph=self.ligand_ph, ligand_template=self.ligand_template,
        )  # fmt: skip
        if self.solvent is not None:
            atoms = self.solvent.choose_radii(atoms)
        if stripped:
            atoms = replace(atoms, notes=(*atoms.notes, stripped))
        if self.solvent is not None and self.solvent.surface == "lcpo" and self.solvent.lcpo_unknown == "carbon":
            atoms = replace(atoms, notes=(*atoms.notes, *lcpo_notes(atoms, self.solvent.lcpo_rule)))
        return MoleculeRead(source, self._noted(source, atoms), chosen=taken, coordinates=file)

    def molecule(self, source: InputFile, models: str = "one") -> MoleculeRead:
        """Read a molecule. models : "one", or "all" to read all models of a file as conformations

        Raises like `one`. Models that differ from the first are in `failed`.
        """
        arguments.choice("models", models, ("one", "all"))
        if models == "one":
            return self.one(source)
        self._require_all()
        failed = dict[int, str]()
        numbers, conformations = read_conformations(source, failed)
        # Request the first model by number, to avoid a note that others were not read.
        first = next((number for place, number in enumerate(numbers) if place not in failed), numbers[0])
        found = self.one(source, first)
        atoms, chosen = found.atoms, found.chosen
        if any(isinstance(each, Note) and each.code == ADDED_HYDROGENS for each in atoms.notes):
            raise InputError(
                f"{source}: its ligands have no hydrogens, which can only be added to one model at a time; choose "
                "one with `model`, or give models with all atoms"
            )
        more = (len(atoms) if chosen is None else len(chosen)) - conformations.shape[1]
        if more > 0:  # atoms of added ligands, which are the same in all models
            there = np.repeat(atoms.positions[np.newaxis, len(atoms) - more :], len(conformations), axis=0)
            conformations = np.concatenate([conformations, there], axis=1)
        positions = conformations if chosen is None else conformations[:, chosen.mask]
        return replace(found, numbers=numbers, conformations=positions, failed=failed)

    def _require_all(self) -> None:
        """Raise KeywordError for options that cannot be combined with reading all models."""
        if self.model is not None:
            raise KeywordError("choose one of `model` and `models`")
        if self.coordinates:
            raise KeywordError("`models='all'` reads the models of a PDB file; leave out `coordinates`")

    def of_frames(self, source: InputFile, trajectory: FirstFrame) -> Atoms:
        """Read all atoms of another file. The positions of a topology are those of the first frame."""
        own = replace(
            self, structures=(source.path,), coordinates=(), model=None, select=None, without=None, only=None,
            trajectory=trajectory,
        )  # fmt: skip
        return own(source)

    def unparameterised(self, source: InputFile, whole: bool = False) -> Atoms:
        """Read the selected atoms of a file with labels and positions, but without parameters; charges are 0.

        whole : True to read all atoms, for example to match those of other files
        """
        positions = self.coordinates_of(source.path)
        parameters = () if positions is None else self._files("parameters")
        found = read_structure_or_atoms(source, self.model, positions, parameters)
        bonds = found.bonds if isinstance(found, Atoms) else np.empty((0, 2), np.int32)
        atoms = Atoms(found.positions, np.zeros(len(found.positions)), labels=found.labels, bonds=bonds)
        if self._selection is not None and not whole:
            atoms = atoms[self._selection.mask(selectable(atoms))]
        return self._noted(source, atoms)

    def coordinates_of(self, structure: Path) -> InputFile | Path | None:
        """Open the coordinate file of a topology; None if there is none. A shared file is read once."""
        given, topologies = self._files("coordinates"), self._topologies
        if topologies and not is_topology(structure):
            return None
        if len(given) == 1 or not (topologies or is_topology(structure)):
            return self._shared_coordinates
        topologies = topologies or (structure,)
        if not given:
            return None
        if len(given) != len(topologies):
            files = f"{len(topologies):,} topology file{'' if len(topologies) == 1 else 's'}"
            raise KeywordError(
                f"`coordinates` is given {len(given)} times for {files}; give one for all, or one for each"
            )
        if topologies.count(structure) > 1:
            raise KeywordError(f"{structure} is given twice; give it once, and its positions as `trajectory`")
        return _opened(given[topologies.index(structure)])

    def require_forcefield(self) -> None:
        """Load the force field if a structure needs one. Raises the errors of ForceField.load."""
        structures = (path for path in self.structures if is_structure(path) and not path.is_dir())
        if not all(map(brings_parameters, structures)):
            assert self.loaded_forcefield is not None

    @cached_property
    def loaded_forcefield(self) -> ForceField:
        """Force field for files without parameters."""
        from ..forcefield import ForceField

        radii = None if self.radii == FILE or goes_by_names(self.radii) else self.radii
        if isinstance(self.forcefield, ForceField):
            return self.forcefield if radii is None else self.forcefield._with_radii(radii)
        return ForceField.load(
            self.forcefield, radii, self._files("templates"), self._files("obc"), self._files("pele_data"),
            self.guess_radii, self.allow_missing_terminals, self.allow_scripts,
        )  # fmt: skip

    def _files(self, name: str) -> tuple[Path, ...]:
        found: tuple[Path, ...] = getattr(self, name)
        return found

    @cached_property
    def _selection(self) -> Selection | None:
        return selection_of(self.select, self.without, self.only)

    def _refuse_parameters(self, path: InputFile) -> None:
        """Raise InputError for force-field options with a file that contains parameters."""
        form = structure_format(path)
        follow_from_bonds = self.radii in (None, FILE, "bondi") or goes_by_names(self.radii) or form.has_bonds
        names = [
            "forcefield",
            *([] if follow_from_bonds else ["radii"]),
            "templates",
            "obc",
            "pele_data",
            "guess_radii",
        ]
        given = [f"`{name}`" for name in names if getattr(self, name)]
        if given:
            raise InputError(f"{path}: {form.kind} contains charges and radii; leave out {', '.join(given)}")

    def _positions(self, source: InputFile) -> tuple[Coordinates, InputFile | Path | None, str]:
        """Find the positions of a topology: the coordinate file, or the first frame with a note, which may be ""."""
        if not self.coordinates and self.trajectory is not None and self.trajectory.paths and is_topology(source):
            whole = read_topology(source, self._files("parameters")).parameters
            positions, stripped = self.trajectory.first_positions(whole, self._selection)
            return positions, None, stripped
        file = self.coordinates_of(source.path)
        return file, file, ""

    @cached_property
    def _topologies(self) -> tuple[Path, ...]:
        """Structures without positions."""
        return tuple(path for path in self.structures if not path.is_dir() and is_topology(path))

    @cached_property
    def _shared_coordinates(self) -> InputFile | Path | None:
        given = self._files("coordinates")
        return _opened(given[0]) if given else None

    def _noted(self, source: InputFile, atoms: Atoms) -> Atoms:
        """Add a note about waters and ions, and report all notes of the atoms."""
        held = Composition.of(atoms.labels).solvent_sentence()
        more = [f"{source}: {held}"] if held else []
        for sentence in (*atoms.notes, *more):
            self._tell(f"Note: {sentence}")
        return replace(atoms, notes=(*atoms.notes, *more)) if more else atoms

    @cached_property
    def _told(self) -> set[str]:
        return set()

    def _tell(self, sentence: str) -> None:
        """Report a message once."""
        if sentence and sentence not in self._told:
            self._told.add(sentence)
            note(sentence)


def molecule_of(source: InputFile, reading: Reading, models: str = "one") -> MoleculeRead:
    """Read a molecule with `Reading.molecule`."""
    return reading.molecule(source, models)


def ligand_templates(path: Path, reading: Reading) -> list[LigandTemplate]:
    """Parametrize the ligands of a Reading, in order, as templates of residues.

    Raises the errors of `read`.
    """
    kind = reading.ligand_forcefield, reading.ligand_charges, reading.ligand_hydrogens, reading.ligand_ph
    given = reading.ligand_template
    named = (given,) if isinstance(given, str) else given
    found = [template_of_ligand(each, kind, None, path, reading.model) for each in reading.ligands]
    return [*found, *(template_of_residue(each, path, kind, None) for each in named)]


def require_lennard_jones(path: str | PathLike[str]) -> None:
    """Raise InputError for formats without Lennard-Jones parameters."""
    if is_structure(path) and not structure_format(path).has_lennard_jones:
        suffix = structure_suffix(path)
        advice = structure_format(path).advice
        raise InputError(f"{path}: a {suffix} file has no Lennard-Jones parameters; {advice}")


def _paths(name: str, given: Files) -> tuple[Path, ...]:
    """Convert one or several paths to a tuple."""
    several = () if given is None else (given,) if isinstance(given, str | PathLike) else given
    return tuple(arguments.file_path(path, name) for path in arguments.file_paths(name, several))


def _opened(path: Path) -> InputFile | Path:
    """Read a coordinate file, or return the path of a large trajectory."""
    from ..formats.amber import is_netcdf

    return path if is_netcdf(path) and path.stat().st_size > LARGE_FILE else read_file(path)
