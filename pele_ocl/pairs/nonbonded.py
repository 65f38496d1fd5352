"""The pairs of atoms whose Lennard-Jones and Coulomb energies are not those of the sums over all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Ints, OneFourPairs
from .bonded import exclusions


@dataclass(frozen=True, eq=False)
class NonbondedPairs:
    """Pairs that the sums leave out, and the energies of 1-4 pairs that take their place.

    excluded : (k, 2) pairs one or two bonds apart, and 1-4 pairs
    one_four : OneFourPairs, which are among them
    """

    excluded: Ints
    one_four: OneFourPairs


def nonbonded_pairs(atoms: Atoms) -> NonbondedPairs:
    """The pairs of atoms.bonded or, where that is None, those that follow from bonds, scales and combining rule."""
    if atoms.bonded is not None:
        one_four = atoms.bonded.one_four
        return NonbondedPairs(np.concatenate([atoms.bonded.excluded, one_four.atoms]), one_four)
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    excluded, pairs = exclusions(atoms.bonds, len(atoms))
    i, j = pairs.T
    by_coulomb, by_lj = atoms.one_four
    first, second = atoms.lj_sigma[i], atoms.lj_sigma[j]
    sigma = np.sqrt(first * second) if atoms.combining == "geometric" else (first + second) / 2
    charges = by_coulomb * atoms.charges[i] * atoms.charges[j]
    wells = by_lj * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])
    return NonbondedPairs(
        np.concatenate([excluded, pairs]), OneFourPairs(pairs, np.column_stack([charges, sigma, wells]))
    )
