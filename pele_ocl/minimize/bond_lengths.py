"""Bonds of structures that were shaken, brought towards their lengths before anything else moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints

OFF = 0.5  # A from its length, that a bond of a force field never is
TORN = 3.0  # A; such a bond has to be closed past other atoms, which the minimizer sees
SHAKEN = 0.02  # of the bonds that are off and not torn: noise all over the structure, not a few bad places
LEAST = 1e-6  # A; atoms at one place have no direction to go, and stay
SWEEPS = 20
SHARE = 0.25  # of the excess that each atom of a bond goes in a sweep; half of what one bond alone would want


@dataclass(frozen=True, eq=False)
class BondLengths:
    """Lengths that the bonds of a molecule have in its force field; docs/theory/minimize.md, section 4.

    bonds : (m, 2) atoms; lengths : (m,) A
    """

    bonds: Ints
    lengths: Floats

    @classmethod
    def of(cls, atoms: Atoms) -> BondLengths | None:
        """Take the bonds of a molecule's force field; None if it has none."""
        if atoms.bonded is None or not len(atoms.bonded.bonds):
            return None
        return cls(atoms.bonded.bonds.atoms, atoms.bonded.bonds.parameters[:, 1])

    def restored(self, positions: Floats, free: NDArray[np.bool_]) -> Floats:
        """Bring bonds of a shaken structure at positions (n, 3) A near their lengths. free : (n,) atoms that move"""
        if not self.n_restored(positions):
            return positions
        found = positions.copy()
        self._restore(found, np.where(free[self.bonds], SHARE, 0.0))
        return found

    def n_restored(self, positions: Floats) -> int:
        """Count bonds of positions (n, 3) A that are off; 0 if they are too few for `restored` to move atoms."""
        if not np.isfinite(positions).all():  # of which the minimizer says that it cannot minimize them
            return 0
        excess = np.abs(self._bonds(positions)[2])
        n_off = int(((excess > OFF) & (excess < TORN)).sum())
        return n_off if n_off > SHAKEN * len(excess) else 0

    def _restore(self, positions: Floats, shares: Floats) -> None:
        """Move positions (n, 3) A by some sweeps; in each, all bonds pull or push their atoms at once.

        shares : (m, 2) of the excess of a bond that each of its atoms goes
        """
        n, (i, j), (of_i, of_j) = len(positions), self.bonds.T, shares.T
        for _ in range(SWEEPS):
            bonds, lengths, excess = self._bonds(positions)
            pulls = np.where(np.abs(excess) < TORN, excess / np.maximum(lengths, LEAST), 0.0)
            for axis in range(3):
                along = pulls * bonds[:, axis]
                positions[:, axis] += np.bincount(i, of_i * along, n) - np.bincount(j, of_j * along, n)

    def _bonds(self, positions: Floats) -> tuple[Floats, Floats, Floats]:
        """Vector from the first atom to the second of each bond at positions (n, 3) A, its length, and its excess."""
        i, j = self.bonds.T
        bonds = np.take(positions, j, axis=0) - np.take(positions, i, axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", bonds, bonds))
        return bonds, lengths, lengths - self.lengths
