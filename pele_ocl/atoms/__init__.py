"""Molecules: atoms with their parameters, names of atoms and residues, structures as files hold them."""

from __future__ import annotations

from .atoms import Atoms, placed, require_atoms
from .bond_paths import exclusions
from .bonded import (
    Angles,
    Bonded,
    Bonds,
    CMaps,
    HarmonicImpropers,
    Impropers,
    LennardJonesPairs,
    OneFourPairs,
    TermTable,
    Torsions,
    UreyBradley,
)
from .labels import Floats, Ints, Labels, Residue, Strings, Structure
from .topology import Topology

__all__ = [
    "Angles",
    "Atoms",
    "Bonded",
    "Bonds",
    "CMaps",
    "Floats",
    "HarmonicImpropers",
    "Impropers",
    "Ints",
    "Labels",
    "LennardJonesPairs",
    "OneFourPairs",
    "Residue",
    "Strings",
    "Structure",
    "TermTable",
    "Topology",
    "Torsions",
    "UreyBradley",
    "exclusions",
    "placed",
    "require_atoms",
]
