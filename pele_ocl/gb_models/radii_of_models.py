"""Rule that says which set of intrinsic radii goes with which GB model; the sets: pele_ocl/atoms/radii.py."""

from __future__ import annotations

import re

# The sets of radii that models were made with, by which AMBER's users choose them; the neck models with no other.
AMBER_RADII = {"hct": "mbondi", "obc1": "mbondi2", "obc2": "mbondi2", "gbn": "bondi", "gbn2": "mbondi3"}
_OF_AMBER = ("amber", "mmpbsa.py", "sander", "gmx")  # programs that take them, as SolventModel.like names them
_NECK_MODELS = ("gbn", "gbn2")
_UNNAMED = {"": "of no named set", "file": "of the input file (no set named)"}  # words for radii of no set


def default_radii(gb: str | None, like: str | None = None) -> str | None:
    """Choose the set of GB radii for structures that bring none; None for the force field's table.

    gb : name of the model, None where there is none; like : program whose constants are wanted, as in SolventModel.like
    """
    if like == "pele":
        return "pele"
    return AMBER_RADII.get(gb or "") if like in _OF_AMBER or gb in _NECK_MODELS else None


def radii_note(gb: str, radii: str) -> str:
    """A sentence where a model was not made for a set of radii, else "".

    radii : name of the set, alone or within the longer one that tleap writes
    """
    made_for = AMBER_RADII.get(gb)
    named = re.findall(r"\b(m?bondi[23]?|openmm-obc|pele)\b", radii)
    if gb not in _NECK_MODELS or named[-1:] == [made_for]:
        return ""
    those = f"those {radii_words(radii)}" if radii in _UNNAMED else radii
    return f"the GB model {gb} was made with the radii {made_for}, not with {those}"


def radii_words(radii: str) -> str:
    """Name a set of radii, to follow the word "radii"; radii : as Atoms.gb_radii_set has it"""
    return _UNNAMED.get(radii, radii)
