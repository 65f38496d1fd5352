"""Small molecules: read them from SDF, mol2 and SMILES, and assign parameters by AmberTools or OpenFF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names, refuse_calls

if TYPE_CHECKING:  # the same names as below, for type checkers and editors
    from .files import read_sdf
    from .molecule import (
        ELEMENTS,
        Ligand,
        Maker,
        count_molecules,
        is_mol,
        is_molecule_file,
        ligand_beside,
        ligand_makers,
        ligand_of_mol,
        molecules_among,
        number_of_residue,
        read_ligands,
    )
    from .parametrisers import Parametriser, check_choice, parametriser_of
    from .residues import LigandTemplate, LigandTemplates
    from .settings import ADDED_HYDROGENS, ATOM_TYPES, CHARGES, HYDROGENS, Hydrogens

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
    "is_mol",
    "is_molecule_file",
    "ligand_beside",
    "ligand_makers",
    "ligand_of_mol",
    "molecules_among",
    "number_of_residue",
    "parametriser_of",
    "read_ligands",
    "read_sdf",
]

if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "files": "read_sdf",
            "molecule": "ELEMENTS Ligand Maker count_molecules is_mol is_molecule_file ligand_beside ligand_makers "
            "ligand_of_mol molecules_among number_of_residue read_ligands",
            "parametrisers": "Parametriser check_choice parametriser_of",
            "residues": "LigandTemplate LigandTemplates",
            "settings": "ADDED_HYDROGENS ATOM_TYPES CHARGES HYDROGENS Hydrogens",
        },
    )

refuse_calls(
    __name__, "pele_ocl.parametrize assigns parameters to a small molecule, and pele_ocl.Ligand.read reads one"
)
