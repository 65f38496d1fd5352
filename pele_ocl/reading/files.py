"""Reading of a file to Atoms, with parameters from the file or a force field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
# Coordinate file of a topology, or the positions.
Coordinates: TypeAlias = str | PathLike[str] | Floats | None
_LIGAND = "gaff2", "mmff"  # default force field and charges of ligands
FILE = "file"  # GB radii from the file
_NO_RADII = "{}: no file contains GB radii; give an OBC table with `obc`, or choose a set"


def require_model(model: object) -> None:
    """Raise InputError unless `model` is None or an integer."""
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

    path : structure file, such as .pdb, or topology file, such as .prmtop, optionally compressed (.gz, .bz2). The
        suffix determines the format. An InputFile is not read again
    forcefield : a ForceField, or a name for ForceField.load; by default Amber99SB. It cannot be used with PQR files,
        mol2 files and topologies, which contain parameters
    model : number of the model in a file with several, or of the frame in `coordinates`; by default the first
    coordinates : positions for a topology: an AMBER restart (.rst7, .inpcrd, .ncrst), a NetCDF trajectory, a structure
        file, or an array (n, 3) A
    parameters : CHARMM parameter files, for a .psf
    select : atoms to read, such as `protein and not resname NAP` (docs/selection.md); by default all. Other residues
        need no template. Indices, a boolean mask, or an MDAnalysis AtomGroup are also accepted
    without, only : names or kinds of residues to leave out, and kinds to read, separated by commas: "HOH,NAP",
        "protein,ligand"
    radii : set of radii as in `Atoms.with_radii`, which no SolventModel replaces, or "file" for those in the file. By
        default the radii in the file are used, if any, otherwise those of the force field, which a SolventModel
        replaces by the set of its GB model (bondi for gbn, mbondi3 for gbn2) or program (SolventModel.like)

    ligands : one or several molecules to add after the atoms of the file: Ligands, RDKit Mols, Atoms, or files of small
        molecules (.sdf, .mol2, .smi). From a file with several, the molecule that matches a residue of the structure is
        used, or the first. If residues without a template match a ligand by elements and bonds, it is not added;
        instead, they get its parameters and keep their positions, unless the selection leaves them out. `ligand_file`
        is an alias
    ligand_forcefield, ligand_charges : force field and charges of ligands without parameters, as in
        `Ligand.parametrize`
    ligand_hydrogens, ligand_ph : "given", or "add" to add missing hydrogens to molecules in files; or the pH for their
        protonation, as in `Ligand.read`
    ligand_template : SMILES, or PDB component codes (`ccd:BEN`), for residues without a template in the force field. At
        least one residue must match

    Missing hydrogens of residues that match a ligand or SMILES are added, with a note.

    Returns Atoms in the order of the file. Raises FormatError if a file cannot be read, and ParameterError if the force
    field does not contain a residue or an atom. Raises InputError for a force field that cannot be used with the file,
    and for an invalid or empty selection.

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
    """Read like `read`. Also returns the selected atoms, None for all. Ligands are never reduced by the selection."""
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
    found, taken, matches = _read_file(path, forcefield, model, coordinates, parameters, select, radii, kind, added)
    for k, each in enumerate(added):
        if matches.get(k) or each.must_be_there:
            continue
        n, atoms = len(found), each.atoms
        found = found + atoms
        if k in matches:
            text = f"the molecule of {each.source} was added; the selection leaves out the residue that matches it"
            found = replace(found, notes=(*found.notes, Note(text, code="ligand_added")))
        if taken is not None:
            labels = None if found.labels is None else labels_of(found.labels, np.arange(n, len(found)))
            taken = taken.with_atoms(len(atoms), labels)
    return found, taken


# Options for ligands: force field, charges, hydrogens, and pH for the protonation.
_Kind: TypeAlias = "tuple[str, str, Hydrogens, float | None]"


def template_of_ligand(
    given: LigandGiven, kind: _Kind, radii: str | None, path: str | PathLike[str], model: int | None
) -> LigandTemplate:  # fmt: skip
    """Parametrize a ligand if necessary. From files with several molecules, choose the one in the structure."""
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
            text = f"the first of {n:,} molecules was used"
            if number:
                text = f"molecule {number:,} of {n:,} was used, because it matches a residue of the structure"
            given = replace(given, notes=(*given.notes, Note(f"{given.source}: {text}", code="first_molecule")))
    atoms = given if isinstance(given, Atoms) else given.parametrize(forcefield, charges)
    source = "the ligand that was given" if isinstance(given, Atoms) else given.source
    return LigandTemplate(atoms if radii in (None, FILE) else atoms.with_radii(str(radii)), source)


def _residues_of(path: str | PathLike[str], model: int | None) -> Structure | None:
    """Read a structure; None for files with parameters and files that cannot be read."""
    try:
        found = read_structure_or_atoms(path, model)
    except PeleError:  # reported when the structure itself is read
        return None
    return found if isinstance(found, Structure) else None


def template_of_residue(template: str, path: str | PathLike[str], kind: _Kind, radii: str | None) -> LigandTemplate:
    """Parametrize a molecule given as SMILES or component code, as a template for residues of a file."""
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
) -> tuple[Atoms, Taken | None, dict[int, bool]]:  # fmt: skip
    """Read the file without adding ligands; arguments as in read_chosen.

    ligand : options for an SDF file; ligands : templates for residues that are not in the force field

    Also returns, for the indices of ligands that match residues, whether such a residue has selected atoms.
    """
    if radii is not None:
        sets = (*RADII_SETS, *PDB2PQR_SETS, FILE)
        arguments.choice("the set of GB radii", tidy_set(arguments.text("radii", radii)), sets)
    arguments.file_path(path)
    require_model(model)
    from ..forcefield import ForceField

    if not isinstance(forcefield, ForceField | str | None):
        raise InputError(f"forcefield is {arguments.described(forcefield)}; expected a ForceField or the name of one")
    if forcefield is not None and brings_parameters(path):
        kind = structure_format(path).kind
        raise InputError(f"{path}: {kind} contains charges and radii; do not give a force field")
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
    named, matches = None if radii == FILE else radii, dict[int, NDArray[np.bool_]]()
    if isinstance(found, Structure):
        by_names = named if goes_by_names(named) else None
        field, found = _with_modified(_field_of(forcefield, None if by_names else named), found)
        found, assign, matches = _assigning(found, field, ligands)
        if not ligands:
            assign = partial(_assigned_by_remarks, path=path, field=field, radii=radii)
        if selection is not None and not selection.needs_types:
            chosen = _chosen_first(found, assign, selection, radii)
            return *chosen, _selected(matches, chosen[1])
        found = assign(found)
        found = found if by_names is None else found.with_radii(by_names)
    else:
        if any(each.must_be_there for each in ligands):
            raise InputError(f"{path}: contains parameters; leave out `ligand_template`")
        found = found if named is None else found.with_radii(named)
        found = found if found.forcefield else replace(found, forcefield="file")
    if radii == FILE and not _brings_radii(found, brings_parameters(path)):
        raise InputError(_NO_RADII.format(path))
    if selection is None:
        return found, None, _selected(matches, None)
    mask, unknown = selection.mask_and_unknown(selectable(found))
    from ..atoms import Taken

    taken = Taken(mask, found.labels)
    return *_noted(found[mask], found, taken, unknown), _selected(matches, taken)


def _selected(matches: Mapping[int, NDArray[np.bool_]], taken: Taken | None) -> dict[int, bool]:
    """Return whether ligands have selected atoms. matches : for each ligand, whether an atom belongs to it, (n,)"""
    return {k: taken is None or bool((own & taken.mask).any()) for k, own in matches.items()}


def _field_of(forcefield: ForceField | str | None, radii: str | None) -> ForceField:
    """Load a force field. radii : set of GB radii, None for its default"""
    from ..forcefield import ForceField

    if not isinstance(forcefield, ForceField):
        return ForceField.load(forcefield, radii)
    return forcefield if radii is None else forcefield._with_radii(radii)


def _assigned_by_remarks(
    structure: Structure, path: str | PathLike[str], field: ForceField, radii: str | None
) -> Atoms:
    """Assign parameters. Residues without a template may use SMILES in remarks of the PDB file."""
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
    """Add templates of phosphorylated residues, which are not in the built-in force field, if necessary."""
    if not np.isin(structure.labels.residue_names, PHOSPHORESIDUES).any():
        return field, structure
    from ..ligand.phosphoresidues import with_phosphoresidues

    return with_phosphoresidues(field, structure)


def _assigning(
    structure: Structure, field: ForceField, ligands: Sequence[LigandTemplate]
) -> tuple[Structure, Callable[[Structure], Atoms], dict[int, NDArray[np.bool_]]]:
    """Return a function that assigns parameters to a structure, and the atoms of residues that match ligands.

    Also returns the structure, with missing hydrogens of these residues added. The atoms are masks (n,) by the index of
    the ligand.
    """
    if not ligands:
        return structure, field._assign_known, {}
    from ..ligand import LigandTemplates

    whole = LigandTemplates.completed(structure, field, ligands)
    templates = LigandTemplates.of(whole, field, ligands)
    return whole, templates.assign, templates.atoms_of(whole)


def _brings_radii(atoms: Atoms, with_parameters: bool) -> bool:
    """Return whether radii come from a file: the structure file, or an OBC table if it has no parameters."""
    if with_parameters:
        return atoms.gb_radii is not None and atoms.default_radii is None
    return atoms.gb_radii_set.startswith(FILE)


def _chosen_first(
    structure: Structure, assign: Callable[[Structure], Atoms], selection: Selection, radii: str | None
) -> tuple[Atoms, Taken | None]:
    """Assign parameters to residues with selected atoms, and then remove their other atoms."""
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
    """Add a note with the number of selected atoms in the file, replacing a previous one.

    unknown : messages about names that are not in the file, which are also added as notes
    """
    if taken.mask.all():
        return replace(before, notes=(*before.notes, *unknown)), None
    note = Note(f"{len(atoms):,} of {len(taken):,} atoms were selected", code="selected")
    return replace(atoms, notes=(*before.notes, *unknown, note)), taken
