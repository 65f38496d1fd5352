"""Mean energies of residues over frames, added up as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...atoms import Floats
from ...trajectories.statistics import Statistics
from ...trajectories.streaming import Evaluated
from ..energies import residue_table, residues_as_json

SPREAD = "total_sd"  # the column beside the means


class ResidueMeans:
    """Means of the terms of each residue, and the standard deviation of its total.

    names : of the residues; none where results have none
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._statistics = Statistics()
        self._terms: tuple[str, ...] = ()

    def add(self, results: Evaluated) -> None:
        """Let further frames count."""
        if not self.names:
            return
        self._terms = tuple(results.residues)
        columns = {f"{term} {k}": column for term in self._terms for k, column in enumerate(results.residues[term].T)}
        self._statistics.add(Evaluated(columns, results.errors))

    def columns(self) -> dict[str, Floats]:
        """Of each term the means (n_residues,) kcal/mol, and the spread of the total; empty where no frame counts."""
        found = list(self._statistics.columns().values())
        means = np.array([of["mean"] for of in found]).reshape(-1, max(1, len(self.names)))
        spreads = np.array([of["sd"] for of in found]).reshape(means.shape)
        columns = dict(zip(self._terms, means, strict=False))
        return {**columns, SPREAD: spreads[self._terms.index("total")]} if found else {}

    def as_json(self) -> list[dict[str, Any]]:
        """An object for each residue."""
        return residues_as_json(self.names, self.columns()) if self.columns() else []

    def lines(self) -> list[str]:
        """A table, where there are residues and frames."""
        columns = self.columns() if self.names else {}
        return ["", residue_table(self.names, [(None, columns)], "mean over frames, ")] if columns else []
