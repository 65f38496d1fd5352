"""Some of a structure's atoms, which know the names of all: so they are found in any other file of the structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .corresponding import correspondence
from .labels import Labels, labels_of, labels_together


@dataclass(frozen=True, eq=False)
class Taken:
    """Atoms that were taken of a structure.

    mask : (n,) True for each atom that was taken, of all n atoms
    labels : of all n atoms; None where the structure has no names

    NumPy takes it for its mask.
    """

    mask: NDArray[np.bool_]
    labels: Labels | None = None

    def __len__(self) -> int:
        return len(self.mask)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.bool_]:
        return np.array(self.mask, dtype) if copy else np.asarray(self.mask, dtype)

    @property
    def indices(self) -> NDArray[np.intp]:
        """Indices (k,) of the atoms that were taken, among all."""
        return np.flatnonzero(self.mask)

    def part(self, chosen: NDArray[np.intp]) -> Taken:
        """Take some of the taken atoms, (j,) indices among these."""
        mask = np.zeros(len(self), np.bool_)
        mask[self.indices[chosen]] = True
        return Taken(mask, self.labels)

    def with_atoms(self, n: int, labels: Labels | None) -> Taken:
        """Add n further atoms behind the structure's, all of them taken; labels : of these"""
        both = None if self.labels is None or labels is None else labels_together(self.labels, labels)
        return Taken(np.concatenate([self.mask, np.ones(n, np.bool_)]), both)

    def among(self, labels: Labels | None, chosen: NDArray[np.intp], source: str) -> NDArray[np.intp]:
        """Find the taken atoms among others, (k,) indices.

        labels : of the others; source : their file
        chosen : indices of those that are the structure's n atoms, or the taken ones alone

        Raises InputError if the chosen ones are other atoms.
        """
        wanted = self.indices
        mine, theirs = self.labels, None if labels is None else labels_of(labels, chosen)
        if len(chosen) != len(self):
            mine = None if mine is None else labels_of(mine, wanted)
            return chosen[correspondence(mine, theirs, source, n_atoms=(len(wanted), len(chosen))).order]
        return chosen[correspondence(mine, theirs, source, n_atoms=(len(self), len(chosen))).order[wanted]]
