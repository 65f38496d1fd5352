"""PELE's long cutoffs: beyond them groups of atoms have no Coulomb and no GB energy with each other.

Groups are backbone and side chain of a residue, whose centroids' distance counts; docs/pele.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...energy import Energy
from ...nonbond import Nonbond
from ...pairs import PairList

NEUTRAL, MIXED, CHARGED = 15.0, 20.0, 30.0  # A: of two neutral groups, a neutral and a charged one, two charged ones
_LEAST_CHARGE = 0.5  # e, of a charged group: those of neutral ones do not add up to 0 in OPLS
_BACKBONE = ("N", "CA", "C", "O", "OXT", "H", "HN", "H1", "H2", "H3", "HA", "HA2", "HA3", "1HA", "2HA", "HXT")


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a molecule: index (n,) of each atom's, and which are charged, (g,)."""

    index: NDArray[np.intp]
    charged: NDArray[np.bool_]

    @classmethod
    def of(cls, atoms: Atoms) -> Groups:
        """Backbone and side chain of each residue that has a backbone; any other residue is one group."""
        assert atoms.labels is not None
        names, residues = atoms.labels.names, atoms.labels.residue_index
        halves = 2 * residues
        for start, end in zip(starts := atoms.labels.residue_starts, [*starts[1:], len(atoms)], strict=True):
            if {"N", "CA", "C"} <= set(names[start:end]):
                halves[start:end] += ~np.isin(names[start:end], _BACKBONE)
        _, index = np.unique(halves, return_inverse=True)
        return cls(index, np.abs(np.bincount(index, atoms.charges)) > _LEAST_CHARGE)

    def far_pairs(self, positions: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The pairs of atoms at positions (n, 3) A whose groups are beyond their cutoff: first, second < first."""
        sizes = np.bincount(self.index)
        centroids = np.stack([np.bincount(self.index, column) for column in positions.T], axis=1) / sizes[:, np.newaxis]
        cutoffs = np.array([NEUTRAL, MIXED, CHARGED])[self.charged[:, np.newaxis].astype(int) + self.charged]
        distances2 = ((centroids[:, np.newaxis] - centroids) ** 2).sum(axis=2)
        first, second = np.nonzero(np.tril((distances2 > cutoffs**2)[self.index[:, np.newaxis], self.index]))
        return first, second


def long_range_energy(plan: Energy, groups: Groups, positions: Floats, born_radii: Floats) -> float:
    """The Coulomb and GB energy, kcal/mol, that PELE leaves out of a molecule at positions (n, 3) A.

    born_radii : (n,) A at these positions
    """
    first, second = groups.far_pairs(positions)
    if not len(first):
        return 0.0
    far = Nonbond(
        plan.atoms.moved(positions), PairList(len(plan.atoms), first, second), gradient=False, precision=plan.precision,
        device=plan.device, model=plan.model,
    )  # fmt: skip
    energy = far.evaluate(born_radii=born_radii).energy
    return energy["coulomb"] + energy.get("gb_pair", 0.0)
