"""Choices of force fields and charges of small molecules."""

ATOM_TYPES = ("gaff2", "gaff")
HYDROGENS = ("given", "add")
CHARGES = {
    "gas": "Gasteiger's charges",
    "bcc": "AM1-BCC charges",
    "abcg2": "ABCG2 charges",
    "file": "charges of the file",
}
