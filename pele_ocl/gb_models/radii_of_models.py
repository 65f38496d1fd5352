"""Notes about sets of intrinsic radii that do not match the GB model.

SolventModel.choose_radii selects the set of a molecule; pele_ocl/atoms/radii.py defines the sets.
"""

from __future__ import annotations

import re

from ..common.notes import Note
from . import GB_MODELS

RADII = "radii"  # code of the note
_UNNAMED = {"": "of an unnamed set", "file": "of the input file (unnamed set)"}  # of unnamed sets
_TABLES = "file, "  # prefix of sets that complete the user's tables


def radii_note(gb: str, radii: str) -> Note | None:
    """Return a note, with the code RADII, if a model was not parametrized with a set of radii.

    radii : name of the set, alone or as part of the longer name that tleap writes
    """
    model = GB_MODELS[gb]
    named = re.findall(r"\b(m?bondi[23]?|openmm-obc|pele)\b", radii)
    if not model.needs_its_radii or named[-1:] == [model.radii_set]:
        return None
    words = radii_words(radii)
    those = radii if words == radii else f"those {words}"
    sentence = f"the GB model {gb} was parametrized with the radii {model.radii_set}, not with {those}"
    return Note(sentence, code=RADII, gb=gb, radii=radii)


def radii_words(radii: str) -> str:
    """Describe a set of radii so that it can follow the word "radii". radii : as in Atoms.gb_radii_set"""
    if radii.startswith(_TABLES):
        return f"of the given OBC tables and {radii.removeprefix(_TABLES)}"
    return _UNNAMED.get(radii, radii)
