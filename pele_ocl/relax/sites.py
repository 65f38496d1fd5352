"""Atoms of a protein to check for violations, determined once for all conformations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints, Labels, Strings
from .stereochemistry import VDW_RADII, residue_bounds, standard_residue

Indices = NDArray[np.intp]
Residues = list[tuple[str, dict[str, int]]]  # standard residue name, and atom indices by name
# Neighbours of each chiral centre, ordered so that their volume is positive in natural amino acids.
_CENTRES = {"CA": ("N", "C", "CB")}
_SIDE_CENTRES = {"ILE": ("CB", ("CA", "CG1", "CG2")), "THR": ("CB", ("CA", "OG1", "CG2"))}


@dataclass(frozen=True, eq=False)
class Sites:
    """Indices of the atoms to check.

    peptides : (p, 4) CA and C, and N and CA of the next residue; before_proline : (p,) whether the next is proline
    pairs, kinds, lowest, highest : pairs (m, 2) of heavy atoms within residues, and bounds of their distances, A
    heavy : atoms checked for clashes; radii, sulphur : (n,) van der Waals radii, A, and whether the atom is SG of CYS
    centres : (c, 4) chiral centres with three neighbours each
    """

    peptides: Indices
    before_proline: NDArray[np.bool_]
    pairs: Indices
    kinds: Strings
    lowest: Floats
    highest: Floats
    heavy: Indices
    radii: Floats
    sulphur: NDArray[np.bool_]
    centres: Indices

    @classmethod
    def of(cls, labels: Labels, bonds: Ints | None) -> Sites:
        """Find the sites of all amino acids. bonds : (m, 2), or None to infer peptide bonds from residue numbers"""
        residues = list(_residues(labels))
        pairs = [
            (atoms[a], atoms[b], bounds)
            for name, atoms in residues
            if name
            for (a, b), bounds in residue_bounds(name).items()
            if a in atoms and b in atoms
        ]
        known = {i for name, atoms in residues if name for atom, i in atoms.items() if atom in heavy_names(name)}
        heavy = np.array(sorted(known), np.intp)
        radii = np.zeros(len(labels))
        radii[heavy] = [VDW_RADII[name[0]] for name in labels.names[heavy].tolist()]
        peptides = list(_peptides(labels, residues, bonds))
        return cls(
            peptides=np.array([atoms for atoms, _ in peptides], np.intp).reshape(-1, 4),
            before_proline=np.array([is_proline for _, is_proline in peptides], np.bool_),
            pairs=np.array([pair[:2] for pair in pairs], np.intp).reshape(-1, 2),
            kinds=np.array([pair[2].kind for pair in pairs], np.str_),
            lowest=np.array([pair[2].lowest for pair in pairs]),
            highest=np.array([pair[2].highest for pair in pairs]),
            heavy=heavy,
            radii=radii,
            sulphur=labels.names == "SG",
            centres=np.array(list(_centres(residues)), np.intp).reshape(-1, 4),
        )


def _residues(labels: Labels) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the standard name of each residue, "" for unknown ones, and its atom indices by name."""
    starts = labels.residue_starts.tolist()
    names = labels.names.tolist()
    for start, end in zip(starts, [*starts[1:], len(labels)], strict=True):
        yield (
            standard_residue(str(labels.residue_names[start])),
            {names[i]: i for i in range(start, end)},
        )


def heavy_names(residue: str) -> frozenset[str]:
    """Return the names of an amino acid's heavy atoms, by standard name; empty for other residues."""
    return frozenset(name for pair in residue_bounds(residue) for name in pair) if residue else frozenset()


def _peptides(labels: Labels, residues: Residues, bonds: Ints | None) -> Iterator[tuple[list[int], bool]]:
    """Yield the atoms of each peptide bond, and whether it precedes a proline."""
    for k, following in _by_numbers(labels) if bonds is None else _by_bonds(labels, bonds):
        (name, before), (next_name, after) = residues[k], residues[following]
        if name and next_name and {"CA", "C"} <= before.keys() and {"N", "CA"} <= after.keys():
            yield [before["CA"], before["C"], after["N"], after["CA"]], next_name == "PRO"


def _by_bonds(labels: Labels, bonds: Ints) -> Iterator[tuple[int, int]]:
    """Yield pairs of residues with a bond from C to N."""
    both = np.concatenate([bonds, bonds[:, ::-1]])
    peptides = both[(labels.names[both] == ["C", "N"]).all(axis=1)]
    pairs = np.searchsorted(labels.residue_starts, peptides, "right") - 1
    yield from map(tuple, pairs[pairs[:, 0] != pairs[:, 1]].tolist())


def _by_numbers(labels: Labels) -> Iterator[tuple[int, int]]:
    """Yield neighbouring residues of the same chain with consecutive numbers."""
    for k, start in enumerate(labels.residue_starts[1:].tolist()):
        last = start - 1
        step = int(labels.residue_numbers[start]) - int(labels.residue_numbers[last])
        follows = step == 1 or (step == 0 and labels.insertion_codes[start] != labels.insertion_codes[last])
        if labels.chains[start] == labels.chains[last] and follows:
            yield k, k + 1


def _centres(residues: Residues) -> Iterator[list[int]]:
    for name, atoms in residues:
        of = dict(_CENTRES) | dict([_SIDE_CENTRES[name]] if name in _SIDE_CENTRES else []) if name else {}
        for centre, others in of.items():
            if {centre, *others} <= atoms.keys():
                yield [atoms[centre], *(atoms[other] for other in others)]
