"""Energies by residue and by pairs of residues; docs/theory/binding.md, section 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Residue
from ..energy.result import BONDED_TERMS

GROUPS = ("internal", "van_der_waals", "electrostatic", "polar", "nonpolar")
IN_RESIDUES = ("complex", "parts", "delta")  # what there is of each residue
SPLITS = ("total", "sidechain", "backbone")  # of the atoms of a residue

_GROUP_OF = {
    **dict.fromkeys(BONDED_TERMS, "internal"),
    "lennard_jones": "van_der_waals", "coulomb": "electrostatic", "gb_pair": "polar", "gb_self": "polar", "pb": "polar",
    "nonpolar": "nonpolar",
}  # fmt: skip
_OF_ONE_FOUR = {"lennard_jones_14": "van_der_waals", "coulomb_14": "electrostatic"}


def grouping(names: Sequence[str], idecomp: int) -> Floats:
    """(n_terms, n_groups) 1 where a term belongs to a group of GROUPS.

    idecomp : as in sander; with 1 and 3 1-4 pairs are internal, with 2 and 4 they are van der Waals and electrostatic
    """
    one_four = dict.fromkeys(_OF_ONE_FOUR, "internal") if idecomp in (1, 3) else _OF_ONE_FOUR
    groups = [{**_GROUP_OF, **one_four}[name] for name in names]
    return np.array([[group == of for of in GROUPS] for group in groups], np.float64)


class Moments:
    """Mean and standard deviation of arrays that come one frame after the other."""

    def __init__(self) -> None:
        self.n = 0
        self._first = self._sum = self._squares = np.zeros(0)

    def add(self, values: Floats) -> None:
        """Let (m, ...) count. Their first is taken off, so that sums of squares keep their digits."""
        if not self.n:
            self._first = values[0].copy()
            self._sum, self._squares = np.zeros_like(self._first), np.zeros_like(self._first)
        for frame in values - self._first:
            self._sum += frame
            self._squares += frame * frame
        self.n += len(values)

    @property
    def mean(self) -> Floats:
        """Mean of all frames, (...)."""
        mean: Floats = self._first + self._sum / self.n
        return mean

    @property
    def sd(self) -> Floats:
        """Population standard deviation, (...)."""
        sd: Floats = np.sqrt(np.maximum(0, self._squares / self.n - (self._sum / self.n) ** 2))
        return sd


@dataclass(frozen=True, eq=False)
class Shares:
    """Mean shares of the energy and their standard deviations (population) over the frames, kcal/mol.

    mean, sd : (n_residues, n_groups), or of pairs (n_residues, n_residues, n_groups) in the order of GROUPS
    sd_total : (n_residues,), or of pairs (n_residues, n_residues), of the sum of all groups
    """

    mean: Floats
    sd: Floats
    sd_total: Floats

    @property
    def total(self) -> Floats:
        """Mean of the sum of all groups, (n_residues,) or (n_residues, n_residues)."""
        total: Floats = self.mean.sum(axis=-1)
        return total


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Shares of residues, and of pairs of them, in the energies of a complex, its parts and their difference.

    residues : n_residues of them, in the order of the atoms; is_ligand : (n_residues,) whether each is the ligand's
    per_residue : Shares of "complex", "parts" (each residue in its own part) and "delta"
    pairs : the same of pairs of residues, symmetric, half an energy in either triangle; None where not asked for
    n_frames : that count; idecomp : 1 to 4, as in sander
    splits : pairs as above of "sidechain" and "backbone" of the first residue with all of the second; empty where not
        asked for
    """

    residues: tuple[Residue, ...]
    is_ligand: NDArray[np.bool_]
    per_residue: Mapping[str, Shares]
    pairs: Mapping[str, Shares] | None
    n_frames: int
    idecomp: int
    splits: Mapping[str, Mapping[str, Shares]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Residues as gmx_MMPBSA writes them: R:A:LEU:4."""
        return [
            f"{'L' if own else 'R'}:{r.chain}:{r.name}:{r.number}{r.insertion_code}"
            for own, r in zip(self.is_ligand.tolist(), self.residues, strict=True)
        ]

    def strongest(self, n: int = 10) -> list[int]:
        """Residues whose mean share in the difference is largest in size, the largest first."""
        order = np.argsort(-np.abs(self.per_residue["delta"].total), kind="stable")
        return [int(k) for k in order[:n]]
