"""Measures of poses before and after they are refined: clashes, strain, energies, and how far they moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.bond_paths import exclusions
from ..common.errors import InputError

Indices = NDArray[np.integer[Any]]

# Radii of van der Waals, A (Bondi 1964; Rowland and Taylor 1996 for hydrogen). A clash is what PoseBusters calls one.
_RADII = {"C": 1.70, "N": 1.55, "O": 1.52, "F": 1.47, "P": 1.80, "S": 1.80, "Cl": 1.75, "Br": 1.85, "I": 1.98}
_OTHER_RADIUS = 1.70
CLASH = 0.75  # of the sum of two radii: heavy atoms of ligand and receptor that are closer clash


@dataclass(frozen=True, eq=False)
class Measures:
    """Numbers of m poses, each (m,), NaN of poses that failed.

    clashes : pairs of heavy atoms of ligand and receptor closer than 0.75 of the sum of their radii
    closest : least distance of such a pair as a share of the sum of its radii
    total : energy of the complex; binding : less the energies of receptor and ligand, kcal/mol
    strain : energy of the ligand alone, less its energy at the nearest minimum, kcal/mol
    score : binding and strain, by which poses are ranked: a ligand that is bent to fit pays for it, kcal/mol
    """

    clashes: Floats
    closest: Floats
    total: Floats
    binding: Floats
    strain: Floats

    @property
    def score(self) -> Floats:
        """Sum of `binding` and `strain`, (m,) kcal/mol."""
        return self.binding + self.strain

    @classmethod
    def joined(cls, parts: Sequence[Measures]) -> Measures:
        """Join the measures of several batches."""
        return cls(**{of.name: np.concatenate([getattr(part, of.name) for part in parts]) for of in fields(cls)})

    def row(self, k: int) -> dict[str, float]:
        """Return the measures of pose k by name."""
        return {name: float(getattr(self, name)[k]) for name in (*(of.name for of in fields(self)), "score")}


@dataclass(frozen=True, eq=False)
class Refined:
    """Refined poses, in the order given.

    positions : (m, n, 3) A of the complexes; NaN for failed poses
    before, after : Measures
    moved : (m,) A, rms displacement of the ligand's heavy atoms, without superposition
    iterations : (m,) of the minimizations; converged : (m,) whether the last one reached its tolerance
    side_chains : (m,) numbers of residues with a changed rotamer
    errors : reasons why poses failed, by index from 0

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> found = pele_ocl.Refiner(atoms, "resid 3", max_iterations=2).refine([atoms.positions])
    >>> found.positions.shape, found.errors
    ((1, 33, 3), {})
    """

    positions: Floats
    before: Measures
    after: Measures
    moved: Floats
    iterations: NDArray[np.int64]
    converged: NDArray[np.bool_]
    side_chains: NDArray[np.int64]
    errors: dict[int, str]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Ranks of the poses by their score after refinement, from 1, (m,); 0 for failed poses."""
        return ranks_of(self.after.score)


def ranks_of(scores: Floats) -> NDArray[np.int64]:
    """Rank energies (m,) from the lowest, from 1; 0 for values that are not finite."""
    ranks = np.zeros(len(scores), np.int64)
    good = np.flatnonzero(np.isfinite(scores))
    ranks[good[np.argsort(scores[good], kind="stable")]] = np.arange(1, len(good) + 1)
    return ranks


def heavy(atoms: Atoms, chosen: Indices) -> Indices:
    """Choose the heavy atoms among some. Raises InputError if the atoms have no elements."""
    if atoms.labels is None:
        raise InputError("these atoms have no elements; read them from a structure file")
    found: Indices = chosen[atoms.labels.elements[chosen] != "H"]
    return found


def _bonded(atoms: Atoms, ours: Indices, theirs: Indices) -> NDArray[np.bool_]:
    """Return which pairs of our atoms and theirs are three bonds apart or less, (n_ours, n_theirs)."""
    near = np.zeros((len(ours), len(theirs)), bool)
    rows, columns = np.full(len(atoms), -1), np.full(len(atoms), -1)
    rows[ours], columns[theirs] = np.arange(len(ours)), np.arange(len(theirs))
    for pairs in exclusions(atoms.bonds, len(atoms)):
        for i, j in (pairs.T, pairs[:, ::-1].T):
            crossing = (rows[i] >= 0) & (columns[j] >= 0)
            near[rows[i[crossing]], columns[j[crossing]]] = True
    return near


def clashes_of(atoms: Atoms, ligand: Indices, receptor: Indices, poses: Iterable[Floats]) -> tuple[Floats, Floats]:
    """Count the clashes of complexes, and find the closest pairs: (m,) and (m,) shares of the sums of radii.

    ligand, receptor : their atoms; poses : positions (n, 3) A of each complex
    """
    ours, theirs = heavy(atoms, ligand), heavy(atoms, receptor)
    assert atoms.labels is not None
    radii = np.array([_RADII.get(str(element), _OTHER_RADIUS) for element in atoms.labels.elements])
    sums = radii[ours][:, None] + radii[theirs]
    sums[_bonded(atoms, ours, theirs)] = np.nan  # a ligand that is bonded to its receptor does not clash there
    found = []
    for positions in poses:
        shares = np.linalg.norm(positions[ours][:, None] - positions[theirs], axis=2) / sums
        found.append((np.count_nonzero(shares < CLASH), np.fmin.reduce(shares, axis=None, initial=np.nan)))
    counts, closest = np.array(found, np.float64).reshape(-1, 2).T
    return counts, closest
