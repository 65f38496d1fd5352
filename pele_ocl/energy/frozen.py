"""Frozen atoms: interactions among them are computed once and left out of every evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import atoms_mask
from ..common.errors import InputError
from ..plan.conformations import Encoding
from ..tiles import Tiles
from .term_set import TermSet

AWAY = 1e-3  # A, largest displacement of a frozen atom
ASIDE = 8.0  # A, spacing of the atoms that are moved aside

# Computes Born integrals (n_slots,) and energies (n_terms,) at positions (n, 3) A.
Measure = Callable[[TermSet, "Frozen | None", Encoding, Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Frozen:
    """Interactions among frozen atoms; docs/theory/restraints.md, section 3.

    integrals : (n_slots,) Born integrals, 1/A
    energies : (n_terms,) kcal/mol
    """

    integrals: Floats
    energies: Floats

    @classmethod
    def of(cls, measure: Measure, contents: TermSet, atoms: Atoms, tiles: Tiles, pairs: bool, doubles: bool) -> Frozen:
        """Compute the interactions from one conformation in which the moving atoms are moved aside.

        measure : runs the passes; the Frozen argument says what they leave out, None for nothing
        contents : terms among frozen atoms; pairs : whether the pair pass leaves out pairs of frozen atoms
        doubles : whether the device supports float64
        """
        aside = _out_of_the_way(atoms, tiles)
        encoding = Encoding.of(float(np.ptp(aside, axis=0).max()), doubles)
        nothing = cls(np.zeros(tiles.n_slots), np.zeros(len(contents.names)))
        bare = replace(contents, grouped=())
        all_of_it = measure(contents, None, encoding, aside)
        rest = measure(bare, nothing, encoding, aside)
        integrals = np.where(np.isfinite(all_of_it[0]), all_of_it[0] - rest[0], 0.0)
        behind = [name for kernels in contents.grouped for name in kernels.names]
        kept = [name in behind or (pairs and name in ("lennard_jones", "coulomb")) for name in contents.names]
        return cls(integrals, np.where(kept, all_of_it[1] - rest[1], 0.0))


def frozen_atoms(atoms: Atoms, frozen: ArrayLike | None) -> NDArray[np.bool_]:
    """Return the mask (n,) of frozen atoms, given as a mask or indices. Raises InputError for anything else."""
    return np.zeros(len(atoms), np.bool_) if frozen is None else atoms_mask("frozen atoms", frozen, len(atoms))


def are_in_place(conformations: Floats, atoms: Atoms, frozen: NDArray[np.bool_]) -> bool:
    """Return whether the frozen atoms of all conformations (m, n, 3) A are at the molecule's positions."""
    return not (_away(conformations, atoms, frozen) > AWAY).any()


def check_in_place(conformations: Floats, atoms: Atoms, frozen: NDArray[np.bool_]) -> None:
    """Raise InputError if frozen atoms have moved."""
    if not are_in_place(conformations, atoms, frozen):
        i = int(np.flatnonzero(frozen)[np.argmax(_away(conformations, atoms, frozen))])
        raise InputError(f"{atoms.describe(i)} is frozen, but not at the position of the plan")


def _away(conformations: Floats, atoms: Atoms, frozen: NDArray[np.bool_]) -> Floats:
    """Largest displacement of each frozen atom along any axis, A; 0 for NaN."""
    away: Floats = np.nan_to_num(np.abs(conformations[:, frozen] - atoms.positions[frozen])).max(axis=(0, 2))
    return away


def _out_of_the_way(atoms: Atoms, tiles: Tiles) -> Floats:
    """Positions (n, 3) A with all atoms outside tiles of frozen atoms moved to a grid away from these."""
    positions = atoms.positions.copy()
    free = np.ones(len(positions), bool)
    free[tiles.order[tiles.first_frozen * tiles.size :]] = False
    edge = int(np.ceil(free.sum() ** (1 / 3)))
    grid = np.stack(np.unravel_index(np.arange(free.sum()), (edge, edge, edge)), axis=1)
    positions[free] = positions[~free].max(axis=0) + ASIDE * (grid + 1)
    return positions
