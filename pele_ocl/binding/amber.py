"""Terms by AMBER's names, as MMPBSA.py prints them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..atoms import Floats
from ..energy.result import ALL_TERMS, PASS_TERMS
from ..results import Terms

GAS, SOLVENT = "GGAS", "GSOLV"
_NAMES = {
    "bond": "BOND", "angle": "ANGLE", "urey_bradley": "UB", "torsion": "DIHED", "improper": "DIHED", "cmap": "CMAP",
    "lennard_jones": "VDWAALS", "coulomb": "EEL", "lennard_jones_14": "1-4 VDW", "coulomb_14": "1-4 EEL",
    "gb_pair": "EGB", "gb_self": "EGB", "pb": "EPB", "nonpolar": "ESURF",
}  # fmt: skip
OF_SOLVENT = ("EGB", "ESURF", "EPB", "ENPOLAR")
ORDER = (
    "BOND", "ANGLE", "UB", "DIHED", "CMAP", "VDWAALS", "EEL", "1-4 VDW", "1-4 EEL", *OF_SOLVENT, GAS, SOLVENT,
)  # fmt: skip


def amber_terms(terms: Terms) -> dict[str, Floats]:
    """Return the terms (...,) by AMBER's names, then GGAS, GSOLV and TOTAL; missing terms are left out.

    DIHED holds impropers, EGB the self energies. The surface is ESURF, or ENPOLAR beside EPB.
    """
    found: dict[str, Floats] = {}
    for name in terms.names:
        amber = amber_name(name, terms.names)
        found[amber] = found.get(amber, 0.0) + getattr(terms, name)
    zero = np.zeros(terms.values.shape[:-1])
    found[GAS] = sum((of for name, of in found.items() if name not in OF_SOLVENT), zero)
    found[SOLVENT] = sum((found[name] for name in OF_SOLVENT if name in found), zero)
    ordered = {name: found[name] for name in ORDER if name in found}
    return {**ordered, **{k: v for k, v in found.items() if k not in ordered}, "TOTAL": found[GAS] + found[SOLVENT]}


def amber_name(term: str, terms: Sequence[str]) -> str:
    """AMBER's name of a term of an energy, whose surface energy has another name with Poisson-Boltzmann."""
    if term == "nonpolar" and "pb" in terms:
        return "ENPOLAR"
    return _NAMES.get(term, term.upper())


# Names of bonded terms and 1-4 pairs, which cancel where complex and parts have the same coordinates.
OF_BONDS = frozenset(amber_name(term, ()) for term in ALL_TERMS if term not in PASS_TERMS)


def interaction(terms: Terms) -> Floats:
    """Return the energy in the gas phase, (...,) kcal/mol."""
    return amber_terms(terms)[GAS]
