"""Small molecules: their graphs out of SDF, mol2 and SMILES, and their parameters by AmberTools' programs."""

from .files import is_ligand_file, read_sdf
from .molecule import (
    ELEMENTS,
    Hydrogens,
    Ligand,
    Maker,
    count_molecules,
    is_molecule_file,
    ligand_makers,
    read_ligands,
)
from .parametrisers import Parametriser, check_choice, parametriser_of
from .residues import ADDED_HYDROGENS, LigandTemplate, LigandTemplates
from .settings import ATOM_TYPES, CHARGES, HYDROGENS

__all__ = [
    "ADDED_HYDROGENS",
    "ATOM_TYPES",
    "CHARGES",
    "ELEMENTS",
    "HYDROGENS",
    "Hydrogens",
    "Ligand",
    "LigandTemplate",
    "LigandTemplates",
    "Maker",
    "Parametriser",
    "check_choice",
    "count_molecules",
    "is_ligand_file",
    "is_molecule_file",
    "ligand_makers",
    "parametriser_of",
    "read_ligands",
    "read_sdf",
]
