"""Selected atoms of a structure, with the labels of all atoms to match them with other files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .corresponding import correspondence
from .labels import Labels, labels_of, labels_together


@dataclass(frozen=True, eq=False)
class Taken:
    """Selected atoms of a structure. NumPy functions treat it as its mask.

    mask : (n,) True for each selected atom, among all n atoms of the structure
    labels : Labels of all n atoms; None if the structure has none
    """

    mask: NDArray[np.bool_]
    labels: Labels | None = None

    def __len__(self) -> int:
        return len(self.mask)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.bool_]:
        return np.array(self.mask, dtype) if copy else np.asarray(self.mask, dtype)

    @property
    def indices(self) -> NDArray[np.intp]:
        """Indices (k,) of the selected atoms in the structure."""
        return np.flatnonzero(self.mask)

    def part(self, chosen: NDArray[np.intp]) -> Taken:
        """Return a subset of the selected atoms, by indices (j,) among them."""
        mask = np.zeros(len(self), np.bool_)
        mask[self.indices[chosen]] = True
        return Taken(mask, self.labels)

    def with_atoms(self, n: int, labels: Labels | None) -> Taken:
        """Append n selected atoms to the structure. labels : their Labels"""
        both = None if self.labels is None or labels is None else labels_together(self.labels, labels)
        return Taken(np.concatenate([self.mask, np.ones(n, np.bool_)]), both)

    def among(self, labels: Labels | None, chosen: NDArray[np.intp], source: str) -> NDArray[np.intp]:
        """Find the selected atoms in another file, (k,) indices.

        labels : Labels of the atoms in the file; source : the file
        chosen : indices of the atoms in the file that correspond to all n atoms, or to the selected ones

        Raises InputError if the chosen atoms do not match.
        """
        wanted = self.indices
        mine, theirs = self.labels, None if labels is None else labels_of(labels, chosen)
        if len(chosen) != len(self):
            mine = None if mine is None else labels_of(mine, wanted)
            return chosen[correspondence(mine, theirs, source, n_atoms=(len(wanted), len(chosen))).order]
        return chosen[correspondence(mine, theirs, source, n_atoms=(len(self), len(chosen))).order[wanted]]
