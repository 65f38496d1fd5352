"""Reading of files to Atoms: parsing, assignment of parameters, and the options shared by all functions."""

from __future__ import annotations

from .choosing import selection_of
from .files import FILE, Coordinates, LigandGiven, Ligands, read, read_chosen, require_model
from .molecules import (
    Chosen,
    FirstFrame,
    Models,
    MoleculeRead,
    Reading,
    ligand_templates,
    molecule_of,
    require_lennard_jones,
)

__all__ = [
    "FILE",
    "Chosen",
    "Coordinates",
    "FirstFrame",
    "LigandGiven",
    "Ligands",
    "Models",
    "MoleculeRead",
    "Reading",
    "ligand_templates",
    "molecule_of",
    "read",
    "read_chosen",
    "require_lennard_jones",
    "require_model",
    "selection_of",
]
