"""Rule that says which set of intrinsic radii goes with which GB model; the sets: pele_ocl/atoms/radii.py."""

from __future__ import annotations

import re

from . import GB_MODELS

_OF_AMBER = ("amber", "mmpbsa.py", "sander", "gmx")  # programs that take a model's own, as SolventModel.like names them
_UNNAMED = {"": "of no named set", "file": "of the input file (no set named)"}  # words for radii of no set


def default_radii(gb: str | None, like: str | None = None) -> str | None:
    """Choose the set of GB radii for structures that bring none; None for the force field's table.

    gb : name of the model, None where there is none; like : program whose constants are wanted, as in SolventModel.like
    """
    if like == "pele":
        return "pele"
    model = None if gb is None else GB_MODELS[gb]
    return model.radii_set if model and (like in _OF_AMBER or model.needs_its_radii) else None


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


def radii_words(radii: str) -> str:
    """Name a set of radii, to follow the word "radii"; radii : as Atoms.gb_radii_set has it"""
    return _UNNAMED.get(radii, radii)
