"""Names of energy terms in pele-ocl and AMBER, for reports and columns of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..energy.result import ALL_TERMS, PASS_TERMS
from ..results import Terms
from .energies import SYSTEMS

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
    """Return the terms (...,) by AMBER's names, followed by GGAS, GSOLV and TOTAL; missing terms are omitted.

    DIHED includes impropers, EGB the self energies. The surface term is ESURF, or ENPOLAR with EPB.
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
    """Return AMBER's name of a term. terms : all terms of the energy; with "pb" the surface term is ENPOLAR"""
    if term == "nonpolar" and "pb" in terms:
        return "ENPOLAR"
    return _NAMES.get(term, term.upper())


# Names of bonded terms and 1-4 pairs, which cancel if complex and parts have the same coordinates.
OF_BONDS = frozenset(amber_name(term, ()) for term in ALL_TERMS if term not in PASS_TERMS)


def interaction(terms: Terms) -> Floats:
    """Return the gas-phase energy, (...,) kcal/mol."""
    return amber_terms(terms)[GAS]


Columns = Mapping[str, NDArray[np.generic]]
OF_AMBER = ("amber", "mmpbsa.py", "sander", "gmx")  # programs that use AMBER's names of terms


@dataclass(frozen=True)
class Naming:
    """Column names, such as `delta_coulomb`, or `delta_EEL` with AMBER's names.

    terms : names of all terms in pele-ocl. With AMBER's names, terms that AMBER sums, such as those of EGB, are also
        written under these names, so that a run can continue the file
    """

    terms: tuple[str, ...]
    is_amber: bool = False

    @property
    def settings(self) -> dict[str, object]:
        """Settings that identify files with AMBER's names."""
        return {"names": "amber"} if self.is_amber else {}

    def columns(self, systems: Mapping[str, Terms]) -> dict[str, NDArray[np.generic]]:
        """Return the columns (m,) of the energies of all systems."""
        return {
            f"{system}_{name}": values for system, terms in systems.items() for name, values in self.of(terms).items()
        }

    def systems(self, columns: Columns) -> dict[str, Terms]:
        """Return the energies of all systems from columns."""
        names = {term: self._name(term) for term in self.terms}
        return {
            system: Terms.of(
                {term: np.asarray(columns[f"{system}_{name}"], np.float64) for term, name in names.items()}
            )
            for system in SYSTEMS
        }

    def of(self, terms: Terms) -> dict[str, NDArray[np.generic]]:
        """Return the energies of one system by column name, (m,) each."""
        own: dict[str, NDArray[np.generic]] = dict(terms.columns())
        if not self.is_amber:
            return own
        return {**amber_terms(terms), **{term: own[term] for term in self.terms if self._name(term) == term}}

    def _name(self, term: str) -> str:
        """Return the column name of a term."""
        if not self.is_amber:
            return term
        names = {each: amber_name(each, self.terms) for each in self.terms}
        return term if Counter(names.values())[names[term]] > 1 else names[term]
