"""Force fields and charge methods for small molecules."""

from typing import Literal

Hydrogens = Literal["given", "add"]

ADDED_HYDROGENS = "ligand_hydrogens_added"  # code of the note about hydrogens added to residues
ATOM_TYPES = ("gaff2", "gaff")
HYDROGENS = ("given", "add")
CHARGES = {
    "mmff": "charges of MMFF94",
    "gas": "Gasteiger's charges",
    "bcc": "AM1-BCC charges",
    "abcg2": "ABCG2 charges",
    "file": "charges of the file",
}
REPLACED = ("mmff", "file")  # charges that replace those of the force field; other parameters are kept
