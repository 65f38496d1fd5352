"""Checks of the arguments of a plan of a pair list."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import described, is_among, numbers
from ..common.errors import InputError
from ..pairs import Pairs, own_lj_pairs, require_pairs


def check_molecule(atoms: Atoms, pairs: Pairs, solvent: str) -> None:
    """Raise InputError for a solvent that does not exist, missing parameters, and a list for other atoms."""
    if not is_among(solvent, ("gb", "vacuum")):
        raise InputError(f"there is no solvent {described(solvent)}; choose gb or vacuum")
    require_atoms(atoms)
    require_pairs(pairs)
    atoms.require(("charges", "lj_sigma", "lj_epsilon"), "the nonbonded energy")
    if pairs.n_atoms != len(atoms):
        raise InputError(f"the pair list is for {pairs.n_atoms} atoms; there are {len(atoms)}")
    if len(own_lj_pairs(atoms)):
        raise InputError(
            "pairs of these atoms have Lennard-Jones parameters of their own (NBFIX), which pair lists cannot hold; "
            "energy computes them"
        )
    atoms.require_apart()


def one_an_atom(name: str, given: ArrayLike, n: int) -> Floats:
    """Positive numbers (n,), copied. Raises InputError for anything else."""
    values = _numbers(given)
    if values.shape != (n,) or not _are_positive(values):
        raise InputError(f"{name} must be {n} positive numbers, one an atom")
    return values


def one_a_conformation(name: str, given: ArrayLike, m: int, n: int) -> Floats:
    """Positive numbers (n,) for all conformations or (m, n), copied. Raises InputError for anything else."""
    values = _numbers(given)
    if values.shape not in ((n,), (m, n)) or not _are_positive(values):
        raise InputError(f"{name} must be positive numbers, ({n},) one an atom or ({m}, {n}) for each conformation")
    return values


def _numbers(given: ArrayLike) -> Floats:
    """Copy the numbers; none if they are no numbers."""
    try:
        return numbers("", given).copy()
    except InputError:
        return np.empty(0)


def _are_positive(values: Floats) -> bool:
    return bool(values.min() > 0 and values.max() < np.inf)  # neither is true of NaN
