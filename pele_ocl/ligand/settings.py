"""Choices of force fields and charges of small molecules."""

ATOM_TYPES = ("gaff2", "gaff")
CHARGES = {"gas": "Gasteiger's charges", "bcc": "AM1-BCC charges", "abcg2": "ABCG2 charges"}
