"""Reading a file to Atoms: the format's reader, then the force field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..atoms import Atoms, Floats, Structure, labels_of, selectable
from ..atoms.chemistry import PHOSPHORESIDUES
from ..atoms.radii import PDB2PQR_SETS, RADII_SETS, goes_by_names, tidy_set
from ..common import arguments
from ..common.errors import InputError, ParameterError, PeleError
from ..common.indices import selection_text
from ..common.inputfile import read_file
from ..common.modules import takes_structures
from ..common.notes import Note
from ..formats import brings_parameters, is_structure, read_structure_or_atoms, structure_format, structure_suffix
from ..ligand.settings import HYDROGENS
from .choosing import selection_of

if TYPE_CHECKING:
    from ..atoms import Taken
    from ..atoms.selection import Selection
    from ..forcefield import ForceField
    from ..ligand import Hydrogens, Ligand, LigandTemplate

LigandGiven: TypeAlias = "str | PathLike[str] | Ligand | Atoms"
Ligands: TypeAlias = "LigandGiven | Iterable[LigandGiven]"
# The file of the positions of a topology, or the positions themselves.
Coordinates: TypeAlias = str | PathLike[str] | Floats | None
_LIGAND = "gaff2", "mmff"  # force field and charges that ligands have by default
FILE = "file"  # GB radii of the structure's own
_NO_RADII = "{}: no file brings GB radii; give an OBC table with `obc`, or name a set"


def require_model(model: object) -> None:
    """Raise InputError unless this is None or the number of a model."""
    if model is not None:
        arguments.whole_number("model", model)


@arguments.checked
@takes_structures("file")
def read(
    path: str | PathLike[str],
    forcefield: ForceField | str | None = None,
    model: int | None = None,
    coordinates: Coordinates = None,
    parameters: Iterable[str | PathLike[str]] = (),
    *,
    select: str | None = None,
    radii: str | None = None,
    ligands: Ligands = (),
    ligand_forcefield: str = "gaff2",
    ligand_charges: str = "mmff",
    ligand_hydrogens: Hydrogens = "given",
    ligand_ph: float | None = None,
    ligand_template: Iterable[str] | str = (),
    without: str | None = None,
    only: str | None = None,
) -> Atoms:
    """Read a molecule and assign parameters.

    path : file of a structure, such as .pdb, or of a topology, such as .prmtop, also with .gz or .bz2. The format
        follows from the suffix; the error for another suffix lists all. An InputFile in place of a path is not read
        again
    forcefield : a ForceField, or a name that ForceField.load knows; by default Amber99SB. PQR files, mol2 files and
        topologies have their own parameters and do not accept one
    model : number of the model in a file with several, or of the frame of `coordinates`; by default the first
    coordinates : for a topology the file with the positions: an AMBER restart (.rst7, .inpcrd, .ncrst), a NetCDF
        trajectory or a structure file. Positions themselves, an array (n, 3) A, do, too
    parameters : CHARMM's parameter files, for a .psf
    select : the atoms to read, such as `protein and not resname NAP` (docs/selection.md); by default all. Other atoms
        need no template. Indices, a mask or an AtomGroup of MDAnalysis are also accepted
    without, only : residues to leave out by name or kind, and kinds to read, separated by commas: "HOH,NAP",
        "protein,ligand"
    radii : set of radii, as in `Atoms.with_radii`, for any solvent; "file" for those of the file. By default those of
        the file if it has some. Else they are the force field's default, which a SolventModel replaces if its GB model
        was made with others (gbn: bondi, gbn2: mbondi3), or if its program has others (SolventModel.like)

    ligands : molecules to add after the atoms of the file, one or several: Ligands, Mols of RDKit, Atoms, or files of
        small molecules (.sdf, .mol2, .smi), of each file the molecule that is a residue of the structure, or the first
        one. If residues without a template are this molecule by elements and bonds, it is not added: they get its
        parameters and keep their positions. `ligand_file` is the same keyword
    ligand_forcefield, ligand_charges : of ligands without parameters, as in `Ligand.parametrize`
    ligand_hydrogens, ligand_ph : "given", or "add" for files of molecules that lack some; or a pH at which they are
        protonated, as in `Ligand.read`
    ligand_template : SMILES, or codes of the PDB's components (`ccd:BEN`), for residues without a template in the force
        field; a file without such a residue is refused

    If hydrogens of such residues are missing, they are added according to the molecule's geometry, with a note.

    Returns Atoms in the order of the file. Raises FormatError if a file cannot be read, and ParameterError if the force
    field lacks a residue or an atom. Raises InputError for a force field that cannot be used with the file. An invalid
    or empty selection is also an InputError.

    >>> pele_ocl.read("data/structures/trialanine.pdb")
    Atoms(33 atoms, 3 residues, 32 bonds, net charge +0.000 e)
    >>> pele_ocl.read("data/structures/trialanine.pdb", select="resid 2:3", radii="mbondi2").gb_radii_set
    'mbondi2'
    """
    if select is not None:
        select = selection_text("select", select)
    chosen = select if without is None and only is None else selection_of(select, without, only)
    return read_chosen(
        path, forcefield, model, coordinates, parameters, select=chosen, radii=radii, ligands=ligands,
        ligand_forcefield=ligand_forcefield, ligand_charges=ligand_charges, ligand_hydrogens=ligand_hydrogens,
        ligand_ph=ligand_ph, ligand_template=ligand_template,
    )[0]  # fmt: skip


def read_chosen(
    path: str | PathLike[str],
    forcefield: ForceField | str | None = None,
    model: int | None = None,
    coordinates: Coordinates = None,
    parameters: Iterable[str | PathLike[str]] = (),
    *,
    select: str | Selection | None = None,
    radii: str | None = None,
    ligands: Ligands = (),
    ligand_forcefield: str = "gaff2",
    ligand_charges: str = "mmff",
    ligand_hydrogens: Hydrogens = "given",
    ligand_ph: float | None = None,
    ligand_template: Iterable[str] | str = (),
) -> tuple[Atoms, Taken | None]:
    """Read as `read` does, and tell which atoms were taken, None if all were. Ligands are taken whole."""
    ligands = arguments.listed_ligands(ligands)
    arguments.text("ligand_forcefield", ligand_forcefield)
    arguments.text("ligand_charges", ligand_charges)
    if (ligand_forcefield, ligand_charges) != _LIGAND:
        from ..ligand.parametrisers import check_choice

        check_choice(ligand_forcefield, ligand_charges, "ligand_")
    arguments.choice("ligand_hydrogens", ligand_hydrogens, HYDROGENS)
    kind = ligand_forcefield, ligand_charges, ligand_hydrogens, ligand_ph
    given = (ligand_template,) if isinstance(ligand_template, str) else ligand_template
    templates = arguments.texts("ligand_template", given)
    added = [template_of_ligand(each, kind, radii, path, model) for each in ligands]
    added += [template_of_residue(each, path, kind, radii) for each in templates]
    found, taken, known = _read_file(path, forcefield, model, coordinates, parameters, select, radii, kind, added)
    for atoms in (each.atoms for k, each in enumerate(added) if k not in known):
        n, found = len(found), found + atoms
        if taken is not None:
            labels = None if found.labels is None else labels_of(found.labels, np.arange(n, len(found)))
            taken = taken.with_atoms(len(atoms), labels)
    return found, taken


# Of ligands: force field, charges, whether hydrogens are added, and the pH at which they are protonated.
_Kind: TypeAlias = "tuple[str, str, Hydrogens, float | None]"


def template_of_ligand(
    given: LigandGiven, kind: _Kind, radii: str | None, path: str | PathLike[str], model: int | None
) -> LigandTemplate:  # fmt: skip
    """Return a ligand parameters, if it has none; of a file with several the one that is a residue of the structure."""
    from ..ligand import (
        Ligand,
        LigandTemplate,
        count_molecules,
        is_mol,
        ligand_beside,
        ligand_of_mol,
        number_of_residue,
    )

    forcefield, charges, hydrogens, ph = kind
    if is_mol(given):
        given = ligand_of_mol(given, "the Mol that was given", hydrogens=hydrogens, ph=ph)
    if not isinstance(given, Atoms | Ligand):
        given = read_file(arguments.file_path(given, "ligands"))
        n, number = count_molecules(given), None
        if n > 1 and is_structure(path):
            number = number_of_residue(given, _residues_of(path, model), hydrogens=hydrogens, ph=ph)
        given = ligand_beside(given, number or 1, hydrogens=hydrogens, ph=ph)
        if n > 1:
            text = f"the first of {n:,} molecules was taken"
            if number:
                text = f"molecule {number:,} of {n:,} was taken, which is a residue of the structure"
            given = replace(given, notes=(*given.notes, Note(f"{given.source}: {text}", code="first_molecule")))
    atoms = given if isinstance(given, Atoms) else given.parametrize(forcefield, charges)
    source = "the ligand that was given" if isinstance(given, Atoms) else given.source
    return LigandTemplate(atoms if radii in (None, FILE) else atoms.with_radii(str(radii)), source)


def _residues_of(path: str | PathLike[str], model: int | None) -> Structure | None:
    """Read a structure's atoms; None of files that have none, or whose parameters and positions are two files."""
    try:
        found = read_structure_or_atoms(path, model)
    except PeleError:  # which is told where the structure itself is read
        return None
    return found if isinstance(found, Structure) else None


def template_of_residue(template: str, path: str | PathLike[str], kind: _Kind, radii: str | None) -> LigandTemplate:
    """Parametrize a molecule given as SMILES or component, as a template for residues of the file at a path."""
    from ..ligand import Ligand, LigandTemplate

    forcefield, charges, _, ph = kind
    source = read_file(path) if structure_suffix(path) in (".cif", ".mmcif", ".pdbx") else None
    ligand = Ligand.from_template(template, source, ph=ph)
    atoms = ligand.parametrize(forcefield, charges)
    return LigandTemplate(atoms if radii in (None, FILE) else atoms.with_radii(str(radii)), ligand.source, True)


def _read_file(
    path: str | PathLike[str], forcefield: ForceField | str | None, model: int | None, coordinates: Coordinates,
    parameters: Iterable[str | PathLike[str]], select: str | Selection | None, radii: str | None,
    ligand: _Kind, ligands: Sequence[LigandTemplate],
) -> tuple[Atoms, Taken | None, frozenset[int]]:  # fmt: skip
    """Read the file itself; parameters as of read_chosen.

    ligand : of an SDF file; ligands : of residues that the force field does not know

    Returns also which of the ligands are residues of the file.
    """
    if radii is not None:
        sets = (*RADII_SETS, *PDB2PQR_SETS, FILE)
        arguments.choice("the set of GB radii", tidy_set(arguments.text("radii", radii)), sets)
    arguments.file_path(path)
    require_model(model)
    from ..forcefield import ForceField

    if not isinstance(forcefield, ForceField | str | None):
        raise InputError(f"forcefield is {arguments.described(forcefield)}; a ForceField or the name of one is needed")
    if forcefield is not None and brings_parameters(path):
        kind = structure_format(path).kind
        raise InputError(f"{path}: {kind} brings its own charges and radii; give no force field with it")
    selection = selection_of(select) if isinstance(select, str) else select
    if not isinstance(coordinates, np.ndarray | None):
        arguments.file_path(coordinates, "coordinates")
    files = arguments.file_paths("parameters", parameters)
    found: Structure | Atoms
    if coordinates is None and not files and structure_format(path).is_of_ligands:
        read_ligand: Callable[..., Atoms] = structure_format(path).read  # type: ignore[assignment]
        found = read_ligand(read_file(path), model, *ligand)
    else:
        found = read_structure_or_atoms(path, model, coordinates, files)
    named, known = None if radii == FILE else radii, frozenset[int]()
    if isinstance(found, Structure):
        by_names = named if goes_by_names(named) else None
        field, found = _with_modified(_field_of(forcefield, None if by_names else named), found)
        found, assign, known = _assigning(found, field, ligands)
        if not ligands:
            assign = partial(_assigned_by_remarks, path=path, field=field, radii=radii)
        if selection is not None and not selection.needs_types:
            return *_chosen_first(found, assign, selection, radii), known
        found = assign(found)
        found = found if by_names is None else found.with_radii(by_names)
    else:
        if any(each.must_be_there for each in ligands):
            raise InputError(f"{path}: brings its own parameters; leave out `ligand_template`")
        found = found if named is None else found.with_radii(named)
        found = found if found.forcefield else replace(found, forcefield="file")
    if radii == FILE and not _brings_radii(found, brings_parameters(path)):
        raise InputError(_NO_RADII.format(path))
    if selection is None:
        return found, None, known
    mask, unknown = selection.mask_and_unknown(selectable(found))
    from ..atoms import Taken

    return *_noted(found[mask], found, Taken(mask, found.labels), unknown), known


def _field_of(forcefield: ForceField | str | None, radii: str | None) -> ForceField:
    """Load a force field that gives GB radii of a set; None for its own."""
    from ..forcefield import ForceField

    if not isinstance(forcefield, ForceField):
        return ForceField.load(forcefield, radii)
    return forcefield if radii is None else forcefield._with_radii(radii)


def _assigned_by_remarks(
    structure: Structure, path: str | PathLike[str], field: ForceField, radii: str | None
) -> Atoms:
    """Return a structure its parameters, also residues that remarks of its PDB file say the molecule of."""
    try:
        return field._assign_known(structure)
    except ParameterError:
        if structure_suffix(path) not in (".pdb", ".ent"):
            raise
        from ..ligand import Ligand, LigandTemplate, LigandTemplates
        from ..ligand.remarks import remarks_in

        found = list[LigandTemplate]()
        for remark in remarks_in(read_file(path)):
            ligand = Ligand.from_template(remark.smiles)
            atoms = ligand.parametrize(remark.forcefield, remark.charges)
            own = atoms if radii in (None, FILE) else atoms.with_radii(str(radii))
            found.append(LigandTemplate(own, f"the remark {remark.smiles}"))
        if not found:
            raise
        return LigandTemplates.of(structure, field, found).assign(structure)


def _with_modified(field: ForceField, structure: Structure) -> tuple[ForceField, Structure]:
    """Add templates of phosphorylated residues, which the built-in force field lacks."""
    if not np.isin(structure.labels.residue_names, PHOSPHORESIDUES).any():
        return field, structure
    from ..ligand.phosphoresidues import with_phosphoresidues

    return with_phosphoresidues(field, structure)


def _assigning(
    structure: Structure, field: ForceField, ligands: Sequence[LigandTemplate]
) -> tuple[Structure, Callable[[Structure], Atoms], frozenset[int]]:
    """Make the function that gives a structure its parameters, and tell which of the ligands are its residues.

    Returns also the structure, with hydrogens that these residues lacked.
    """
    if not ligands:
        return structure, field._assign_known, frozenset()
    from ..ligand import LigandTemplates

    whole = LigandTemplates.completed(structure, field, ligands)
    templates = LigandTemplates.of(whole, field, ligands)
    return whole, templates.assign, templates.used


def _brings_radii(atoms: Atoms, with_parameters: bool) -> bool:
    """Return whether radii are a file's: the structure's, or where it has no parameters those of an OBC table."""
    if with_parameters:
        return atoms.gb_radii is not None and atoms.default_radii is None
    return atoms.gb_radii_set.startswith(FILE)


def _chosen_first(
    structure: Structure, assign: Callable[[Structure], Atoms], selection: Selection, radii: str | None
) -> tuple[Atoms, Taken | None]:
    """Assign parameters to the residues with a chosen atom, and leave out their other atoms afterwards."""
    mask, unknown = selection.mask_and_unknown(selectable(structure.labels, structure.positions))
    whole = selection.whole_residues(structure.labels, mask)
    atoms = assign(structure.of_residues(whole))
    if radii is not None and goes_by_names(radii):
        atoms = atoms.with_radii(radii)
    if radii == FILE and not _brings_radii(atoms, False):
        raise InputError(_NO_RADII.format(structure.source))
    from ..atoms import Taken

    taken = Taken(mask, structure.labels)
    return _noted(atoms if mask.sum() == whole.sum() else atoms[mask[whole]], atoms, taken, unknown)


def _noted(
    atoms: Atoms, before: Atoms, taken: Taken, unknown: tuple[str, ...]
) -> tuple[Atoms, Taken | None]:  # fmt: skip
    """Note on the atoms how many of the file's they are, in place of the note that counts them before.

    unknown : messages about names that the file has not, which become notes, too
    """
    if taken.mask.all():
        return replace(before, notes=(*before.notes, *unknown)), None
    note = Note(f"{len(atoms):,} of {len(taken):,} atoms were taken", code="selected")
    return replace(atoms, notes=(*before.notes, *unknown, note)), taken
