"""Conversion of RDKit molecules to Atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, Ints, Structure, given_default_radii
from ..atoms.chemistry import counted_names, is_polymer
from ..common.arguments import choice, described, numbers
from ..common.errors import InputError, ParameterError
from ..common.extras import extra
from ..forcefield.openmm.gb_forces import DEFAULT_SET
from ..formats.assembly import ListedAtoms, structure

if TYPE_CHECKING:
    from rdkit.Chem import Mol

CHARGES = {"gasteiger": "Gasteiger's", "mmff": "those of MMFF94"}
_NAME = "RDKit's molecule"


def from_rdkit(molecule: Mol, charges: str | ArrayLike = "gasteiger", conformer: int = -1) -> Atoms:
    """Convert an RDKit Mol with all hydrogens to Atoms, with mbondi2 radii and without Lennard-Jones parameters.

    charges : "gasteiger", "mmff" for those of MMFF94, or an array (n,) e
    conformer : id of the conformer, by default the first

    Raises InputError for missing hydrogens or positions, ParameterError if the method has no charges for the molecule.

    >>> from rdkit import Chem
    >>> from rdkit.Chem import AllChem
    >>> molecule = Chem.AddHs(Chem.MolFromSmiles("CO"))
    >>> AllChem.EmbedMolecule(molecule, randomSeed=1)
    0
    >>> len(pele_ocl.from_rdkit(molecule))
    6
    """
    chem = extra("rdkit.Chem", "a molecule of RDKit")
    if not isinstance(molecule, chem.Mol):
        raise InputError(f"molecule is {described(molecule)}; expected a Mol of RDKit")
    if not molecule.GetNumConformers():
        raise InputError(f"{_NAME} has no positions; embed it: AllChem.EmbedMolecule(molecule)")
    if lacking := sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms()):
        raise InputError(f"{_NAME}: {lacking:,} hydrogens are missing; add them: Chem.AddHs(molecule, addCoords=True)")
    try:
        positions = np.array(molecule.GetConformer(conformer).GetPositions(), np.float64)
    except ValueError:
        raise InputError(f"{_NAME} has no conformer {described(conformer)}") from None
    found = _charges(molecule, charges) if isinstance(charges, str) else numbers("charges", charges)
    whose = CHARGES[charges] if isinstance(charges, str) else "those that were given"
    bonds = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()], np.int32).reshape(-1, 2)
    records = _records(molecule, positions)
    atoms = Atoms(
        positions=positions,
        charges=found,
        labels=structure(records, _NAME, names_matter=False).labels,
        bonds=np.unique(np.sort(bonds, axis=1), axis=0),
        notes=(
            f"charges are {whose}; RDKit's molecule has no Lennard-Jones and bonded parameters, which are part of a "
            "topology of GAFF or OpenFF",
        ),
    )
    return given_default_radii(atoms, DEFAULT_SET)


def polymer_of(molecule: Mol) -> Structure | None:
    """Convert a Mol with PDB residue information to a Structure; None without amino acids and nucleotides."""
    infos = [atom.GetPDBResidueInfo() for atom in molecule.GetAtoms()]
    if not infos or None in infos or not any(is_polymer(info.GetResidueName().strip()) for info in infos):
        return None
    if not molecule.GetNumConformers():
        raise InputError(f"{_NAME} has no positions; embed it: AllChem.EmbedMolecule(molecule)")
    positions = np.array(molecule.GetConformer().GetPositions(), np.float64)
    return structure(_records(molecule, positions), _NAME, names_matter=False)


def _charges(molecule: Mol, method: str) -> Floats:
    """Compute charges (n,) e. Raises InputError for an unknown method, ParameterError if it fails for the molecule."""
    choice("charges", method, CHARGES)
    if method == "mmff":
        fields: Any = extra("rdkit.Chem.rdForceFieldHelpers", "MMFF94")
        properties = fields.MMFFGetMoleculeProperties(molecule)
        if properties is None:
            raise ParameterError(f"MMFF94 has no charges for {_NAME}; choose charges='gasteiger', or give an array")
        return np.array([properties.GetMMFFPartialCharge(i) for i in range(molecule.GetNumAtoms())])
    partial: Any = extra("rdkit.Chem.rdPartialCharges", "Gasteiger's charges")
    copied = type(molecule)(molecule)  # the charges are stored in its atoms
    partial.ComputeGasteigerCharges(copied)
    found = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in copied.GetAtoms()])
    if not np.isfinite(found).all():
        i = int(np.argmin(np.isfinite(found)))
        raise ParameterError(
            f"Gasteiger charges are not available for atom {i} ({copied.GetAtomWithIdx(i).GetSymbol()}) of {_NAME}; "
            "choose charges='mmff', or give an array"
        )
    return found


def _records(molecule: Mol, positions: Floats) -> ListedAtoms:
    """Return the atoms as listed in a file, with names from a PDB file, or otherwise from numbered elements."""
    atoms = list(molecule.GetAtoms())
    n, infos = len(atoms), [atom.GetPDBResidueInfo() for atom in atoms]
    elements = np.array([atom.GetSymbol() for atom in atoms])
    is_named = all(info is not None for info in infos)
    names = [info.GetName().strip() for info in infos] if is_named else counted_names(elements.tolist())
    zeros: Ints = np.zeros(n, np.int32)
    return ListedAtoms(
        positions=positions,
        names=np.array(names, np.str_),
        elements=elements,
        residue_names=np.array([info.GetResidueName().strip() if is_named else "LIG" for info in infos], np.str_),
        residue_numbers=np.array([info.GetResidueNumber() if is_named else 1 for info in infos], np.int32),
        insertion_codes=np.array([info.GetInsertionCode().strip() if is_named else "" for info in infos], np.str_),
        chains=np.array([info.GetChainId().strip() if is_named else "" for info in infos], np.str_),
        altlocs=np.full(n, ""),
        occupancies=np.ones(n),
        hetero=np.array([info.GetIsHeteroAtom() if is_named else True for info in infos], bool),
        pieces=zeros,
        copies=zeros,
        lines=zeros,
    )
