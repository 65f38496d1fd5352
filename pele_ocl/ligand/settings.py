"""Choices of force fields and charges of small molecules."""

from typing import Literal

Hydrogens = Literal["given", "add"]

ADDED_HYDROGENS = "ligand_hydrogens_added"  # code of the note about hydrogens that residues lacked
ATOM_TYPES = ("gaff2", "gaff")
PHOSPHORESIDUES = ("SEP", "TPO", "PTR", "S1P", "T1P", "Y1P")  # whose templates AmberTools has
HYDROGENS = ("given", "add")
CHARGES = {
    "gas": "Gasteiger's charges",
    "bcc": "AM1-BCC charges",
    "abcg2": "ABCG2 charges",
    "file": "charges of the file",
}
