"""Kinds of residues, and the composition of molecules."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..chemistry import is_nucleotide, is_polymer, is_water
from ..labels import Labels, Strings

if TYPE_CHECKING:
    from .nearby import Bools

KINDS = ("protein", "nucleic", "water", "ion", "ligand")

_SUGAR = ("C1'", "C1*")
_BACKBONE = (("N",), ("CA",), ("C",), ("O", "OXT", "O1", "OT1"))  # of all amino acids
_NAMED = 6  # maximum number of ligand or ion names to list


def residue_kinds(labels: Labels) -> Strings:
    """Return the kind of each residue, (n_residues,) of KINDS.

    protein: amino acids and peptide caps; nucleic: nucleotides; ion: other residues of one atom; ligand: all others.
    Residues are recognized by name, including protonation states and the names of other programs. Residues with unknown
    names are protein if they have an amino-acid backbone (N, CA, C, O) and are part of a chain: an adjacent residue
    with a consecutive number is protein or also has such a backbone.
    """
    if not len(labels):
        return np.empty(0, "<U7")
    starts = labels.residue_starts
    names = labels.residue_names[starts].tolist()
    alone = (np.diff(starts, append=len(labels)) == 1).tolist()
    sweet = np.logical_or.reduceat(np.isin(labels.names, _SUGAR), starts).tolist()
    known = {row: _kind(*row) for row in set(zip(names, alone, sweet, strict=True))}
    kinds = np.array([known[row] for row in zip(names, alone, sweet, strict=True)], "<U7")
    if "ligand" in kinds:
        kinds[(kinds == "ligand") & _within_chains(labels, kinds == "protein")] = "protein"
    return kinds


def _within_chains(labels: Labels, is_protein: Bools) -> Bools:
    """Return a mask (n_residues,) of residues with a backbone next to one that is protein or has a backbone."""
    starts = labels.residue_starts
    has_backbone: Bools = np.logical_and.reduce(
        [np.logical_or.reduceat(np.isin(labels.names, names), starts) for names in _BACKBONE]
    )
    numbers, chains = labels.residue_numbers[starts], labels.chains[starts]
    linked = (chains[1:] == chains[:-1]) & (np.abs(np.diff(numbers.astype(np.int64))) <= 1)
    there = has_backbone | is_protein
    beside = np.append(linked & there[1:], False) | np.append(False, linked & there[:-1])
    found: Bools = has_backbone & beside
    return found


def _kind(name: str, alone: bool, has_sugar: bool) -> str:
    """Return the kind of a residue, by its name and whether it has a single atom or a sugar."""
    if is_water(name):
        return "water"
    if is_nucleotide(name, has_sugar):
        return "nucleic"
    if is_polymer(name):
        return "protein"
    return "ion" if alone else "ligand"


@dataclass(frozen=True)
class Composition:
    """Number of residues of each kind in a molecule; ligands and ions are counted by name."""

    protein: int = 0
    nucleic: int = 0
    ligands: dict[str, int] = field(default_factory=dict)
    ions: dict[str, int] = field(default_factory=dict)
    waters: int = 0

    @classmethod
    def of(cls, labels: Labels | None) -> Composition:
        """Count the residues of a molecule. All counts are 0 without labels."""
        if labels is None or not len(labels):
            return cls()
        kinds = residue_kinds(labels).tolist()
        names = labels.residue_names[labels.residue_starts].tolist()
        counts = Counter(kinds)
        named = {
            kind: dict(Counter(name for name, of in zip(names, kinds, strict=True) if of == kind))
            for kind in ("ligand", "ion")
        }
        return cls(counts["protein"], counts["nucleic"], named["ligand"], named["ion"], counts["water"])

    def as_json(self) -> dict[str, int | dict[str, int]]:
        """Return the counts as a dictionary."""
        return asdict(self)

    def parts(self) -> list[str]:
        """Describe each kind present: `76 amino acids`, `1 ligand (NAP)`, `2 ions (1 NA, 1 CL)`, `58 waters`."""
        found = [_counted(self.protein, "amino acid"), _counted(self.nucleic, "nucleotide")]
        found += [_named(self.ligands, "ligand"), _named(self.ions, "ion"), _counted(self.waters, "water")]
        return [part for part in found if part]

    def solvent_sentence(self) -> str:
        """Return `58 waters and 2 ions are part of the solute`, or "" without waters and ions."""
        n_ions = sum(self.ions.values())
        counts = [part for part in (_counted(self.waters, "water"), _counted(n_ions, "ion")) if part]
        verb = "is" if self.waters + n_ions == 1 else "are"
        return f"{' and '.join(counts)} {verb} part of the solute" if counts else ""


def _counted(n: int, what: str) -> str:
    """Return `1 water`, `2 waters`, or "" for 0."""
    return f"{n:,} {what}{'' if n == 1 else 's'}" if n else ""


def _named(counts: dict[str, int], what: str) -> str:
    """Return `3 ions (1 NA, 2 CL)`, `1 ligand (NAP)`, or "" without any."""
    if not counts:
        return ""
    total = sum(counts.values())
    shown = [name if total == 1 else f"{n:,} {name}" for name, n in list(counts.items())[:_NAMED]]
    more = f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else ""
    return f"{_counted(total, what)} ({', '.join(shown)}{more})"
