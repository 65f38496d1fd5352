"""Arrays that evaluators fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.threads import in_parts

# Numbers that BLAS adds up in one thread: with more it starts its own, which wait for each other and spin meanwhile.
_BLOCK = 8192


def norm2(values: NDArray[Any]) -> float:
    """Sum all squares, in a third of the time of a look at each number; not finite if one is not."""
    if values.size <= _BLOCK:
        return float(np.vdot(values, values))  # unlike `dot` it does not warn of overflows
    return sum(in_parts(values.shape[-1], lambda columns: _norm2_of_blocks(values[..., columns].ravel())))


def _norm2_of_blocks(flat: NDArray[Any]) -> float:
    blocks = (flat[first : first + _BLOCK] for first in range(0, len(flat), _BLOCK))
    return sum(float(np.vdot(block, block)) for block in blocks)


@dataclass(frozen=True, eq=False)
class Outputs:
    """Results of m conformations of n atoms, float64; an array is None if not requested.

    energies : (m, n_terms) kcal/mol, the terms of the plan
    gradients : (m, n, 3) kcal/mol/A
    born_radii : (m, n) A
    psi : (m, n) argument of the radius function, dimensionless
    per_atom : (m, n, n_terms) kcal/mol
    """

    energies: Floats
    gradients: Floats | None = None
    born_radii: Floats | None = None
    psi: Floats | None = None
    per_atom: Floats | None = None

    @classmethod
    def empty(
        cls, m: int, n: int, n_terms: int, *, gradients: bool = False, born_radii: bool = False, psi: bool = False,
        per_atom: bool = False,
    ) -> Outputs:  # fmt: skip
        """Arrays to be filled."""
        return cls(
            np.empty((m, n_terms)),
            np.empty((m, n, 3)) if gradients else None,
            np.empty((m, n)) if born_radii else None,
            np.empty((m, n)) if psi else None,
            np.empty((m, n, n_terms)) if per_atom else None,
        )

    def arrays(self) -> Iterator[Floats]:
        """Yield the arrays that were asked for."""
        for f in fields(self):
            array = getattr(self, f.name)
            if array is not None:
                yield array

    def erase(self, k: int) -> None:
        """Fill conformation k with NaN."""
        for array in self.arrays():
            array[k] = np.nan

    def bad_atoms(self, k: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Atoms of conformation k whose gradient is not finite or whose Born radius is not positive, (n,)."""
        bad = np.zeros(next((a.shape[1] for a in self.arrays() if a is not self.energies), 0), bool)
        if self.born_radii is not None:
            bad |= ~(np.isfinite(self.born_radii[k]) & (self.born_radii[k] > 0))
        if self.gradients is not None:
            bad |= ~np.isfinite(self.gradients[k]).all(axis=1)
        if self.per_atom is not None:
            bad |= ~np.isfinite(self.per_atom[k]).all(axis=1)
        return bad

    def is_good(self, k: int) -> bool:
        """Tell if all results of conformation k are finite and its Born radii positive."""
        return bool(np.isfinite(self.energies[k]).all()) and not bool(self.bad_atoms(k).any())
