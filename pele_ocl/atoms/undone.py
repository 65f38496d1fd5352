"""Pairs of atoms with an energy term that is not supported."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..common.readonly import ReadOnlyArrays, read_only
from .labels import Ints


@dataclass(frozen=True, eq=False)
class UndonePairs(ReadOnlyArrays):
    """Pairs of atoms with an unsupported energy term, by type.

    types : (n,) type of each atom, from 0; table : (t, t) True for pairs of types with the term
    what : description, such as "have a 12-6-4 term, which is not computed"
    """

    types: Ints
    table: NDArray[np.bool_]
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", read_only(self.types, np.int32))
        object.__setattr__(self, "table", read_only(self.table, np.bool_))

    def first(self) -> tuple[int, int] | None:
        """Return the first such pair of atoms, or None."""
        for i, j in np.argwhere(np.triu(self.table)).tolist():
            first, second = (np.flatnonzero(self.types == k) for k in (i, j))
            if i == j:
                second = second[1:]
            if len(first) and len(second):
                return int(first[0]), int(second[0])
        return None

    def of_atoms(self, indices: Ints) -> UndonePairs | None:
        """Return the pairs among some atoms, by indices; None if there are none."""
        found = replace(self, types=self.types[indices])
        return None if found.first() is None else found
