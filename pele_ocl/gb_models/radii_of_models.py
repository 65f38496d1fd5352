"""Sentences about sets of intrinsic radii and the GB models that were made with them.

Which set a molecule gets: SolventModel.choose_radii. The sets: pele_ocl/atoms/radii.py.
"""

from __future__ import annotations

import re

from . import GB_MODELS

_UNNAMED = {"": "of no named set", "file": "of the input file (no set named)"}  # words for radii of no set


def radii_note(gb: str, radii: str) -> str:
    """A sentence where a model was not made for a set of radii, else "".

    radii : name of the set, alone or within the longer one that tleap writes
    """
    model = GB_MODELS[gb]
    named = re.findall(r"\b(m?bondi[23]?|openmm-obc|pele)\b", radii)
    if not model.needs_its_radii or named[-1:] == [model.radii_set]:
        return ""
    those = f"those {radii_words(radii)}" if radii in _UNNAMED else radii
    return f"the GB model {gb} was made with the radii {model.radii_set}, not with {those}"


def is_radii_note(sentence: str) -> bool:
    """Return whether a note is one of `radii_note`, of whatever model."""
    return any(
        of.needs_its_radii and sentence.startswith(f"the GB model {name} was made with the radii")
        for name, of in GB_MODELS.items()
    )


def radii_words(radii: str) -> str:
    """Name a set of radii, to follow the word "radii"; radii : as in Atoms.gb_radii_set"""
    return _UNNAMED.get(radii, radii)
