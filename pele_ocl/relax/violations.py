"""Find violations of a protein's stereochemistry by AlphaFold's criteria.

The criteria are from Jumper et al., Nature 596, 583 (2021), supplement 1.9.11, and are used in AlphaFold's relaxation.
They cover peptide bonds and adjacent angles, distances within residues, and clashes between residues, for heavy atoms
of the twenty amino acids. Wrong chirality and cis peptides are also reported, although AlphaFold does not count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats, Ints, Labels
from ..common.arguments import positions_of
from ..common.errors import InputError
from ..pairs.pairlist import pairs_of
from ..pairs.search import codes_within
from .sites import Sites
from .stereochemistry import DEVIATIONS, OVERLAP_A, VDW_RADII

# Mean and standard deviation of the peptide bond length (A), by whether the next residue is proline, and of the cosines
# of adjacent angles.
_PEPTIDE_BOND = {False: (1.329, 0.014), True: (1.341, 0.016)}
_PEPTIDE_ANGLES = {"angle CA-C-N": (-0.4473, 0.0311), "angle C-N-CA": (-0.5203, 0.0353)}
_CIS_DEGREES = 90.0  # peptide torsions below this are cis
_FARTHEST = 2 * max(VDW_RADII.values()) - OVERLAP_A


@dataclass(frozen=True)
class Violation:
    """A violation of the stereochemistry.

    kind : "bond C-N", "angle CA-C-N", "angle C-N-CA"; "bond", "angle" and "contact" within a residue; "clash" between
        residues; "chirality", "cis peptide"
    atoms : indices of the atoms
    value, lowest, highest : measured value and its bounds: A; degrees for angles and peptide torsions; A^3 for chiral
        volumes
    """

    kind: str
    atoms: tuple[int, ...]
    value: float
    lowest: float
    highest: float

    @property
    def counts(self) -> bool:
        """True if AlphaFold counts it."""
        return self.kind not in ("chirality", "cis peptide")

    def described(self, labels: Labels) -> str:
        """Describe the violation, e.g. `clash A:LEU5:CD1 - A:VAL9:CG2: 1.32 A, at least 1.90 A`."""
        unit = {"chirality": " A^3", "cis peptide": " degrees"}.get(self.kind, " degrees" if self._is_angle else " A")
        names = " - ".join(labels.atom(i) for i in self.atoms)
        if np.isinf(self.highest):
            bounds = f"at least {self.lowest:.2f}{unit}"
        else:
            bounds = f"{self.lowest:.2f} to {self.highest:.2f}{unit}"
        return f"{self.kind} {names}: {self.value:.2f}{unit}, {bounds}"

    @property
    def _is_angle(self) -> bool:
        return self.kind in _PEPTIDE_ANGLES


class Violations:
    """Finds violations in conformations of a molecule.

    bonds : (m, 2) bonds of the atoms, used to find peptide bonds; if None, residues of a chain with consecutive numbers
        are assumed to be bonded
    """

    def __init__(self, labels: Labels, bonds: Ints | None = None) -> None:
        self.labels = labels
        self._sites = Sites.of(labels, bonds)

    def find(self, positions: ArrayLike) -> list[Violation]:
        """Find all violations at positions (n, 3) A, peptide bonds first, then by kind.

        Raises InputError for positions that have another shape or are not finite.
        """
        there = positions_of(positions)
        if len(there) != len(self.labels) or not np.isfinite(there).all():
            raise InputError(f"positions have shape {there.shape}; expected ({len(self.labels)}, 3) finite numbers")
        return [
            *self._peptide_bonds(there), *self._within(there), *self._clashes(there), *self._chirality(there),
            *self._cis(there),
        ]  # fmt: skip

    def residues(self, found: Sequence[Violation]) -> NDArray[np.intp]:
        """Return the indices of residues with atoms in violations, from 0."""
        index = np.cumsum(np.diff(self.labels.residue_index, prepend=self.labels.residue_index[:1]) != 0)
        return np.unique([index[i] for violation in found for i in violation.atoms]).astype(np.intp)

    def _peptide_bonds(self, positions: Floats) -> list[Violation]:
        sites = self._sites
        calpha, carbon, nitrogen, next_calpha = positions[sites.peptides].swapaxes(0, 1)
        before_proline = sites.before_proline
        mean, deviation = np.where(before_proline[:, None], _PEPTIDE_BOND[True], _PEPTIDE_BOND[False]).T
        bonds = sites.peptides[:, 1:3]
        spread = DEVIATIONS * deviation
        found = _outside("bond C-N", bonds, _lengths(nitrogen - carbon), mean - spread, mean + spread)
        triples = {
            "angle CA-C-N": (sites.peptides[:, :3], calpha - carbon, nitrogen - carbon),
            "angle C-N-CA": (sites.peptides[:, 1:], carbon - nitrogen, next_calpha - nitrogen),
        }
        for kind, (atoms, one, other) in triples.items():
            cosine, cosine_deviation = _PEPTIDE_ANGLES[kind]
            ends = np.clip([cosine + DEVIATIONS * cosine_deviation, cosine - DEVIATIONS * cosine_deviation], -1, 1)
            low, high = np.degrees(np.arccos(ends))
            cosines = np.einsum("ij,ij->i", one, other) / np.maximum(_lengths(one) * _lengths(other), 1e-12)
            found += _outside(kind, atoms, np.degrees(np.arccos(np.clip(cosines, -1, 1))), low, high)
        return found

    def _within(self, positions: Floats) -> list[Violation]:
        sites = self._sites
        distances = _lengths(positions[sites.pairs[:, 0]] - positions[sites.pairs[:, 1]])
        found = []
        for kind in ("bond", "angle", "contact"):
            of = sites.kinds == kind
            found += _outside(kind, sites.pairs[of], distances[of], sites.lowest[of], sites.highest[of])
        return found

    def _clashes(self, positions: Floats) -> list[Violation]:
        """Find close pairs of atoms of different residues, except peptide bonds and pairs of cysteine sulphurs."""
        sites = self._sites
        pairs = sites.heavy[np.stack(pairs_of(codes_within(positions[sites.heavy], _FARTHEST)), axis=1)]
        residue = self.labels.residue_index[pairs]
        pairs = pairs[residue[:, 0] != residue[:, 1]]
        is_bond = np.isin(pairs @ [len(self.labels), 1], np.sort(sites.peptides[:, 1:3], axis=1) @ [len(positions), 1])
        pairs = pairs[~is_bond & ~sites.sulphur[pairs].all(axis=1)]
        distances = _lengths(positions[pairs[:, 0]] - positions[pairs[:, 1]])
        return _outside("clash", pairs, distances, sites.radii[pairs].sum(axis=1) - OVERLAP_A, np.inf)

    def _chirality(self, positions: Floats) -> list[Violation]:
        """Find chiral centres with inverted configuration."""
        centre, *others = positions[self._sites.centres].swapaxes(0, 1)
        one, two, three = (other - centre for other in others)
        volumes = np.einsum("ij,ij->i", one, np.cross(two, three))
        return _outside("chirality", self._sites.centres, volumes, 0.0, np.inf)

    def _cis(self, positions: Floats) -> list[Violation]:
        """Find cis peptides, except before proline, where they are common."""
        atoms = self._sites.peptides[~self._sites.before_proline]
        calpha, carbon, nitrogen, next_calpha = positions[atoms].swapaxes(0, 1)
        axis = nitrogen - carbon
        left, right = np.cross(carbon - calpha, axis), np.cross(axis, next_calpha - nitrogen)
        cosines = np.einsum("ij,ij->i", left, right)
        sines = np.einsum("ij,ij->i", np.cross(left, right), axis) / np.maximum(_lengths(axis), 1e-12)
        torsions = np.abs(np.degrees(np.arctan2(sines, cosines)))
        return _outside("cis peptide", atoms, torsions, _CIS_DEGREES, 180.0)


def _lengths(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))


def _outside(
    kind: str, atoms: NDArray[np.intp], values: Floats, lowest: Floats | float, highest: Floats | float
) -> list[Violation]:  # fmt: skip
    """Return a violation for each of the values (m,) outside its bounds. atoms : (m, k)"""
    low, high = np.broadcast_to(lowest, values.shape), np.broadcast_to(highest, values.shape)
    beyond = np.flatnonzero((values < low) | (values > high))
    return [
        Violation(kind, tuple(atoms[k].tolist()), float(values[k]), float(low[k]), float(high[k]))
        for k in beyond.tolist()
    ]
