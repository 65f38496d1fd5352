"""Molecules: atoms with their parameters, names of atoms and residues, structures as files hold them."""

from __future__ import annotations

from .atoms import Atoms, require_atoms
from .labels import Floats, Ints, Labels, Residue, Strings, Structure

__all__ = [
    "Atoms",
    "Floats",
    "Ints",
    "Labels",
    "Residue",
    "Strings",
    "Structure",
    "require_atoms",
]
