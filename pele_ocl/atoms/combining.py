"""Combining rules for Lennard-Jones parameters."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..common.errors import InputError
from ..common.notes import Note
from .bonded import LennardJonesPairs, OneFourPairs, pair_codes
from .labels import Floats, Ints

Combining = Literal["arithmetic", "geometric"]
RULES: tuple[Combining, ...] = ("arithmetic", "geometric")

# Files and force fields round coefficients to a few digits; NBFIX parameters differ by percents.
_SAME = 1e-5

MOST_PAIRS = 2_000_000  # pairs of atoms with specific parameters; each needs 40 bytes on the device


def mean_sigma(first: Floats, second: Floats, rule: Combining) -> Floats:
    """Return the combined sigma (A) of pairs of atoms; the arrays must be broadcastable."""
    mean: Floats = np.sqrt(first * second) if rule == "geometric" else (first + second) / 2
    return mean


def scaled_pairs(
    pairs: Ints, charges: Floats, sigma: Floats, epsilon: Floats, rule: Combining, scales: tuple[float, float]
) -> OneFourPairs:
    """Make 1-4 pairs (k, 2) with combined parameters times the (Coulomb, Lennard-Jones) scale factors.

    charges, sigma, epsilon : (n,) parameters of the atoms, e, A and kcal/mol
    """
    i, j = pairs.T
    by_coulomb, by_lj = scales
    columns = (
        by_coulomb * charges[i] * charges[j], mean_sigma(sigma[i], sigma[j], rule),
        by_lj * np.sqrt(epsilon[i] * epsilon[j]),
    )  # fmt: skip
    return OneFourPairs(pairs, np.column_stack(columns))


def rule_of(sigma: Floats, epsilon: Floats) -> tuple[Combining, NDArray[np.intp]]:
    """Find the combining rule that most pairs of types follow, and the (k, 2) pairs of types that do not, i <= j.

    sigma, epsilon : (t, t) in any unit; sigma is ignored for pairs with an epsilon of 0
    """
    own, wells = sigma.diagonal(), epsilon.diagonal()
    expected = np.sqrt(np.outer(wells, wells))
    of_epsilon = ~(np.abs(epsilon - expected) <= _SAME * np.maximum(epsilon, expected))
    astray = []
    for rule in RULES:
        mean = mean_sigma(own[:, None], own, rule)
        astray.append(np.argwhere(np.triu(of_epsilon | ((epsilon > 0) & (np.abs(sigma - mean) > _SAME * mean)))))
    best = int(np.argmin([len(pairs) for pairs in astray]))
    return RULES[best], astray[best]


def pairs_of_types(
    types: NDArray[np.integer], chosen: NDArray[np.intp], sigma: Floats, epsilon: Floats, left_out: Ints
) -> LennardJonesPairs:
    """Make Lennard-Jones pairs of all atoms with the chosen pairs of types.

    types : (n,) types of the atoms; chosen : (k, 2) pairs of types
    sigma, epsilon : (t, t) A and kcal/mol
    left_out : (m, 2) pairs of atoms to leave out: exclusions and 1-4 pairs

    Raises InputError for more than MOST_PAIRS.
    """
    counts = np.bincount(types, minlength=len(sigma)).astype(np.int64)
    if (n_pairs := int(counts[chosen].prod(axis=1).sum())) > MOST_PAIRS:
        raise InputError(
            f"{n_pairs:,} pairs of atoms have special Lennard-Jones parameters (NBFIX), more than "
            f"{MOST_PAIRS:,}; leave out solvent, ions or lipids"
        )
    if not len(chosen):
        return LennardJonesPairs()
    found = [np.empty((0, 2), np.int64)]
    for one, other in chosen.tolist():
        i, j = np.meshgrid(np.flatnonzero(types == one), np.flatnonzero(types == other), indexing="ij")
        found.append(np.column_stack([i.ravel(), j.ravel()]))
        if one == other:
            found[-1] = found[-1][i.ravel() < j.ravel()]
    pairs = np.concatenate(found)
    pairs = pairs[~np.isin(pair_codes(pairs), pair_codes(left_out))]
    t, u = types[pairs].T
    return LennardJonesPairs(np.sort(pairs, axis=1).astype(np.int32), np.column_stack([sigma[t, u], epsilon[t, u]]))


def pairs_note(pairs: LennardJonesPairs) -> tuple[str, ...]:
    """Return a note on the number of pairs with specific parameters, if any."""
    if not len(pairs):
        return ()
    return (
        Note(
            f"{len(pairs):,} pairs of atoms have special Lennard-Jones parameters (NBFIX), which are used",
            code="pair_parameters",
        ),
    )
