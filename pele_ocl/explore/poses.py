"""Measures of poses before and after refinement: clashes, strain, energies and displacements."""

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

# Van der Waals radii, A (Bondi 1964; Rowland and Taylor 1996 for hydrogen). Clashes are defined as in PoseBusters.
_RADII = {"C": 1.70, "N": 1.55, "O": 1.52, "F": 1.47, "P": 1.80, "S": 1.80, "Cl": 1.75, "Br": 1.85, "I": 1.98}
_OTHER_RADIUS = 1.70
CLASH = 0.75  # fraction of the sum of two radii below which a heavy atom of the ligand clashes with the receptor


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of m poses, each (m,), with NaN for failed poses.

    clashes : number of pairs of heavy atoms of ligand and receptor closer than 0.75 times the sum of their radii
    closest : smallest distance of such a pair, divided by the sum of the radii
    total : energy of the complex, kcal/mol; binding : this minus the energies of receptor and ligand, kcal/mol
    strain : energy of the isolated ligand minus its energy at the nearest minimum, kcal/mol
    score : sum of binding and strain, used to rank the poses, kcal/mol
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
        """Concatenate the measures of several batches."""
        return cls(**{of.name: np.concatenate([getattr(part, of.name) for part in parts]) for of in fields(cls)})

    def row(self, k: int) -> dict[str, float]:
        """Return the measures of pose k by name."""
        return {name: float(getattr(self, name)[k]) for name in (*(of.name for of in fields(self)), "score")}


@dataclass(frozen=True, eq=False)
class Refined:
    """Refined poses, in input order.

    positions : (m, n, 3) A of the complexes; NaN for failed poses
    before, after : Measures
    moved : (m,) rms displacement of the ligand's heavy atoms without superposition, A
    iterations : (m,) numbers of minimization iterations; converged : (m,) whether the last minimization converged
    side_chains : (m,) numbers of residues whose rotamer changed
    errors : error messages of failed poses, by index from 0

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
        """Ranks of the poses by score after refinement, from 1, (m,); 0 for failed poses."""
        return ranks_of(self.after.score)


def ranks_of(scores: Floats) -> NDArray[np.int64]:
    """Rank energies (m,): 1 for the lowest, 0 for values that are not finite."""
    ranks = np.zeros(len(scores), np.int64)
    good = np.flatnonzero(np.isfinite(scores))
    ranks[good[np.argsort(scores[good], kind="stable")]] = np.arange(1, len(good) + 1)
    return ranks


def heavy(atoms: Atoms, chosen: Indices) -> Indices:
    """Return the heavy atoms among the chosen ones. Raises InputError if the atoms have no elements."""
    if atoms.labels is None:
        raise InputError("these atoms have no elements; read them from a structure file")
    found: Indices = chosen[atoms.labels.elements[chosen] != "H"]
    return found


def _bonded(atoms: Atoms, ours: Indices, theirs: Indices) -> NDArray[np.bool_]:
    """Return a mask of the pairs of atoms at most three bonds apart, (n_ours, n_theirs)."""
    near = np.zeros((len(ours), len(theirs)), bool)
    rows, columns = np.full(len(atoms), -1), np.full(len(atoms), -1)
    rows[ours], columns[theirs] = np.arange(len(ours)), np.arange(len(theirs))
    for pairs in exclusions(atoms.bonds, len(atoms)):
        for i, j in (pairs.T, pairs[:, ::-1].T):
            crossing = (rows[i] >= 0) & (columns[j] >= 0)
            near[rows[i[crossing]], columns[j[crossing]]] = True
    return near


def clashes_of(atoms: Atoms, ligand: Indices, receptor: Indices, poses: Iterable[Floats]) -> tuple[Floats, Floats]:
    """Count the clashes of complexes, (m,), and find their closest pairs, (m,) distances relative to the sum of radii.

    ligand, receptor : indices of their atoms; poses : positions (n, 3) A of each complex
    """
    ours, theirs = heavy(atoms, ligand), heavy(atoms, receptor)
    assert atoms.labels is not None
    radii = np.array([_RADII.get(str(element), _OTHER_RADIUS) for element in atoms.labels.elements])
    sums = radii[ours][:, None] + radii[theirs]
    sums[_bonded(atoms, ours, theirs)] = np.nan  # bonds between ligand and receptor are not clashes
    found = []
    for positions in poses:
        shares = np.linalg.norm(positions[ours][:, None] - positions[theirs], axis=2) / sums
        found.append((np.count_nonzero(shares < CLASH), np.fmin.reduce(shares, axis=None, initial=np.nan)))
    counts, closest = np.array(found, np.float64).reshape(-1, 2).T
    return counts, closest
