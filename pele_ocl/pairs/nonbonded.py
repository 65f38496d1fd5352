"""Pairs of atoms whose Lennard-Jones and Coulomb energies differ from the sums over all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats, Ints, LennardJonesPairs, OneFourPairs
from ..atoms.bond_paths import exclusions
from ..atoms.combining import mean_sigma, scaled_pairs


@dataclass(frozen=True, eq=False)
class NonbondedPairs:
    """Excluded pairs, and 1-4 pairs with their parameters.

    excluded : (k, 2) pairs separated by one or two bonds, and 1-4 pairs
    one_four : OneFourPairs, a subset of the excluded pairs
    """

    excluded: Ints
    one_four: OneFourPairs


def nonbonded_pairs(atoms: Atoms) -> NonbondedPairs:
    """Return the pairs of atoms.bonded or, without it, those from bonds, scale factors and combining rule."""
    if atoms.bonded is not None:
        one_four = atoms.bonded.one_four
        return NonbondedPairs(np.concatenate([atoms.bonded.excluded, one_four.atoms]), one_four)
    excluded, pairs = exclusions(atoms.bonds, len(atoms))
    return NonbondedPairs(np.concatenate([excluded, pairs]), _scaled(atoms, pairs))


def own_lj_pairs(atoms: Atoms) -> LennardJonesPairs:
    """Return the pairs of atoms.bonded with their own Lennard-Jones parameters (NBFIX)."""
    return LennardJonesPairs() if atoms.bonded is None else atoms.bonded.lj_pairs


def lj_corrections(atoms: Atoms, pairs: LennardJonesPairs) -> tuple[Floats, Floats]:
    """Return sigma, A, and epsilon, kcal/mol, of pairs, (k, 2): their own, and those from the combining rule."""
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    i, j = pairs.atoms.T
    sigma = mean_sigma(atoms.lj_sigma[i], atoms.lj_sigma[j], atoms.combining)
    return pairs.parameters, np.column_stack([sigma, np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])])


def has_scaled_pairs(atoms: Atoms) -> bool:
    """Return whether all 1-4 energies follow from the atoms' parameters and the scale factors atoms.one_four."""
    if atoms.bonded is None or atoms.lj_sigma is None or atoms.lj_epsilon is None:
        return True
    table = atoms.bonded.one_four
    own = _scaled(atoms, table.atoms)
    (charges, sigma, wells), (own_charges, own_sigma, own_wells) = table.parameters.T, own.parameters.T
    same = np.isclose(charges, own_charges, rtol=1e-5, atol=1e-7) & np.isclose(wells, own_wells, rtol=1e-5, atol=1e-9)
    return bool((same & (np.isclose(sigma, own_sigma, rtol=1e-5) | (own_wells == 0))).all())


def _scaled(atoms: Atoms, pairs: Ints) -> OneFourPairs:
    """1-4 pairs (k, 2) with combined and scaled parameters of their atoms."""
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    return scaled_pairs(pairs, atoms.charges, atoms.lj_sigma, atoms.lj_epsilon, atoms.combining, atoms.one_four)
