"""Tables for people and for files, which are the library's."""

from __future__ import annotations

from ..jobs.facts import Energies as Energies
from ..jobs.facts import names_of_residues as names_of_residues
from ..jobs.facts import residues_as_json as residues_as_json
from ..jobs.texts import UNIT as UNIT
from ..jobs.texts import Model as Model
from ..jobs.texts import model_columns as model_columns
from ..jobs.texts import model_lines as model_lines
from ..jobs.texts import reasons as reasons
from ..jobs.texts import residue_table as residue_table
from ..report import text_table as table

__all__ = [
    "UNIT",
    "Energies",
    "Model",
    "model_columns",
    "model_lines",
    "names_of_residues",
    "reasons",
    "residue_table",
    "residues_as_json",
    "table",
]
