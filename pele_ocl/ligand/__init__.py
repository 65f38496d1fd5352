"""Small molecules: their graphs out of SDF, mol2 and SMILES, and their parameters by AmberTools' programs."""

from .files import is_ligand_file, read_sdf
from .molecule import ELEMENTS, Ligand, read_ligands
from .settings import ATOM_TYPES, CHARGES

__all__ = ["ATOM_TYPES", "CHARGES", "ELEMENTS", "Ligand", "is_ligand_file", "read_ligands", "read_sdf"]
