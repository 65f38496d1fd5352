"""Bonds of structures that were shaken, brought towards their lengths before anything else moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints

OFF = 0.5  # A from its length, that a bond of a force field never is
TORN = 3.0  # A; such a bond has to be closed past other atoms, which the minimiser sees
SHAKEN = 0.02  # of the bonds that are off and not torn: noise all over the structure, not a few bad places
LEAST = 1e-6  # A; atoms at one place have no direction to go, and stay
SWEEPS = 20
SHARE = 0.25  # of the excess that each atom of a bond goes in a sweep; half of what one bond alone would want


@dataclass(frozen=True, eq=False)
class BondLengths:
    """The lengths that the bonds of a molecule have in its force field; docs/theory/minimize.md, section 4.

    bonds : (m, 2) atoms; lengths : (m,) A; shares : (m, 2) SHARE, or 0 of atoms that stay
    """

    bonds: Ints
    lengths: Floats
    shares: Floats

    @classmethod
    def of(cls, atoms: Atoms, free: NDArray[np.bool_]) -> BondLengths | None:
        """Those of a molecule, None where it has none. free : (n,) atoms that move"""
        if atoms.bonded is None or not len(atoms.bonded.bonds):
            return None
        of = atoms.bonded.bonds
        return cls(of.atoms, of.parameters[:, 1], np.where(free[of.atoms], SHARE, 0.0))

    def restored(self, conformations: Floats) -> Floats:
        """Conformations (m, n, 3) A, of which shaken ones have bonds near their lengths; each has the bits as alone."""
        found = conformations.copy()
        for one in found:
            if self.n_restored(one):
                self._restore(one)
        return found

    def n_restored(self, positions: Floats) -> int:
        """How many bonds of positions (n, 3) A are off, where they are so many that `restored` moves atoms; else 0."""
        if not np.isfinite(positions).all():  # of which the minimiser says that it cannot minimise them
            return 0
        excess = np.abs(self._bonds(positions)[2])
        n_off = int(((excess > OFF) & (excess < TORN)).sum())
        return n_off if n_off > SHAKEN * len(excess) else 0

    def _restore(self, positions: Floats) -> None:
        """Move positions (n, 3) A by some sweeps, in each of which all bonds pull or push their atoms at once."""
        n, (i, j), (of_i, of_j) = len(positions), self.bonds.T, self.shares.T
        for _ in range(SWEEPS):
            bonds, lengths, excess = self._bonds(positions)
            pulls = np.where(np.abs(excess) < TORN, excess / np.maximum(lengths, LEAST), 0.0)
            for axis in range(3):
                along = pulls * bonds[:, axis]
                positions[:, axis] += np.bincount(i, of_i * along, n) - np.bincount(j, of_j * along, n)

    def _bonds(self, positions: Floats) -> tuple[Floats, Floats, Floats]:
        """Of each bond at positions (n, 3) A: from its first atom to the second, its length, and its excess."""
        i, j = self.bonds.T
        bonds = positions[j] - positions[i]
        lengths = np.sqrt((bonds * bonds).sum(axis=1))
        return bonds, lengths, lengths - self.lengths
