"""Notes about sets of intrinsic radii that do not match the GB model.

SolventModel.choose_radii selects the set of a molecule; pele_ocl/atoms/radii.py defines the sets.
"""

from __future__ import annotations

import re

from . import GB_MODELS

_UNNAMED = {"": "of an unnamed set", "file": "of the input file (unnamed set)"}  # of unnamed sets


def radii_note(gb: str, radii: str) -> str:
    """Return a note if a model was not parametrized with a set of radii, otherwise "".

    radii : name of the set, alone or as part of the longer name that tleap writes
    """
    model = GB_MODELS[gb]
    named = re.findall(r"\b(m?bondi[23]?|openmm-obc|pele)\b", radii)
    if not model.needs_its_radii or named[-1:] == [model.radii_set]:
        return ""
    those = f"those {radii_words(radii)}" if radii in _UNNAMED else radii
    return f"the GB model {gb} was parametrized with the radii {model.radii_set}, not with {those}"


def is_radii_note(sentence: str) -> bool:
    """Return whether a note comes from `radii_note`, for any model."""
    return any(
        of.needs_its_radii and sentence.startswith(f"the GB model {name} was parametrized with the radii")
        for name, of in GB_MODELS.items()
    )


def radii_words(radii: str) -> str:
    """Describe a set of radii so that it can follow the word "radii". radii : as in Atoms.gb_radii_set"""
    return _UNNAMED.get(radii, radii)
