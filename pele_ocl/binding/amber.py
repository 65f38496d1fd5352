"""Terms by AMBER's names, as MMPBSA.py prints them."""

from __future__ import annotations

import numpy as np

from ..atoms import Floats
from ..results import Terms

GAS, SOLVENT = "GGAS", "GSOLV"
_NAMES = {
    "bond": "BOND", "angle": "ANGLE", "urey_bradley": "UB", "torsion": "DIHED", "improper": "DIHED", "cmap": "CMAP",
    "lennard_jones": "VDWAALS", "coulomb": "EEL", "lennard_jones_14": "1-4 VDW", "coulomb_14": "1-4 EEL",
    "gb_pair": "EGB", "gb_self": "EGB", "nonpolar": "ESURF",
}  # fmt: skip
ORDER = ("BOND", "ANGLE", "UB", "DIHED", "CMAP", "VDWAALS", "EEL", "1-4 VDW", "1-4 EEL", "EGB", "ESURF", GAS, SOLVENT)
_OF_SOLVENT = ("EGB", "ESURF")


def amber_terms(terms: Terms) -> dict[str, Floats]:
    """Return the terms (...,) by AMBER's names, then GGAS, GSOLV and TOTAL; missing terms are left out.

    DIHED holds impropers, EGB the self energies.
    """
    found: dict[str, Floats] = {}
    for name in terms.names:
        amber = amber_name(name)
        found[amber] = found.get(amber, 0.0) + getattr(terms, name)
    zero = np.zeros(terms.values.shape[:-1])
    found[GAS] = sum((of for name, of in found.items() if name not in _OF_SOLVENT), zero)
    found[SOLVENT] = sum((found[name] for name in _OF_SOLVENT if name in found), zero)
    ordered = {name: found[name] for name in ORDER if name in found}
    return {**ordered, **{k: v for k, v in found.items() if k not in ordered}, "TOTAL": found[GAS] + found[SOLVENT]}


def amber_name(term: str) -> str:
    """AMBER's name of a term."""
    return _NAMES.get(term, term.upper())


def interaction(terms: Terms) -> Floats:
    """Return the energy in the gas phase, (...,) kcal/mol."""
    return amber_terms(terms)[GAS]
