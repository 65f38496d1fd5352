"""Columns of binding energies in files, by our names of the terms or by AMBER's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..results import Terms
from .amber import amber_name, amber_terms
from .energies import SYSTEMS

Columns = Mapping[str, NDArray[np.generic]]
OF_AMBER = ("amber", "mmpbsa.py", "sander", "gmx")  # programs whose users know the terms by AMBER's names


@dataclass(frozen=True)
class Naming:
    """Names of columns: `delta_coulomb`, or, as AMBER has it, `delta_EEL`.

    terms : our names of all. With AMBER's names the terms that it adds up, such as the two of EGB, follow by
    ours, too, so that nothing is lost and a run can go on with the file.
    """

    terms: tuple[str, ...]
    is_amber: bool = False

    @property
    def settings(self) -> dict[str, object]:
        """Settings that tell files of the two namings apart."""
        return {"names": "amber"} if self.is_amber else {}

    def columns(self, systems: Mapping[str, Terms]) -> dict[str, NDArray[np.generic]]:
        """Return the columns of the energies of all systems, which are of shape (m,)."""
        return {
            f"{system}_{name}": values for system, terms in systems.items() for name, values in self.of(terms).items()
        }

    def systems(self, columns: Columns) -> dict[str, Terms]:
        """Return the energies of all systems that columns hold."""
        names = {term: self._name(term) for term in self.terms}
        return {
            system: Terms.of(
                {term: np.asarray(columns[f"{system}_{name}"], np.float64) for term, name in names.items()}
            )
            for system in SYSTEMS
        }

    def of(self, terms: Terms) -> dict[str, NDArray[np.generic]]:
        """Return the energies of one system by the names of their columns, (m,) each."""
        own: dict[str, NDArray[np.generic]] = dict(terms.columns())
        if not self.is_amber:
            return own
        return {**amber_terms(terms), **{term: own[term] for term in self.terms if self._name(term) == term}}

    def _name(self, term: str) -> str:
        """Name the column of a term."""
        if not self.is_amber:
            return term
        names = {each: amber_name(each, self.terms) for each in self.terms}
        return term if Counter(names.values())[names[term]] > 1 else names[term]
