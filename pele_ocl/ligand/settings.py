"""Choices of force fields and charges of small molecules."""

from typing import Literal

Hydrogens = Literal["given", "add"]

ADDED_HYDROGENS = "ligand_hydrogens_added"  # code of the note about hydrogens that residues lacked
ATOM_TYPES = ("gaff2", "gaff")
HYDROGENS = ("given", "add")
CHARGES = {
    "mmff": "charges of MMFF94",
    "gas": "Gasteiger's charges",
    "bcc": "AM1-BCC charges",
    "abcg2": "ABCG2 charges",
    "file": "charges of the file",
}
REPLACED = ("mmff", "file")  # charges that take the place of a force field's, whose other parameters stay
