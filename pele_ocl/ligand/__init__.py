"""Small molecules: their graphs out of SDF, mol2 and SMILES, and their parameters by AmberTools' programs."""

from .files import is_ligand_file, read_sdf
from .molecule import ELEMENTS, Hydrogens, Ligand, count_molecules, read_ligands
from .residues import LigandTemplate, LigandTemplates
from .settings import ATOM_TYPES, CHARGES, HYDROGENS

__all__ = [
    "ATOM_TYPES",
    "CHARGES",
    "ELEMENTS",
    "HYDROGENS",
    "Hydrogens",
    "Ligand",
    "LigandTemplate",
    "LigandTemplates",
    "count_molecules",
    "is_ligand_file",
    "read_ligands",
    "read_sdf",
]
