"""Bonds between residues of a model, and gaps in its chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Structure
from ..forcefield.bonding import POLYMER_BOND_A

Indices = NDArray[np.intp]

GAP_A = 4.0  # A, C-N distance above which the chain has a gap


def in_chains(structure: Structure, close_gaps: bool = False) -> Structure:
    """Return the structure with new segments, in which each residue is bonded to the next one.

    Residues with consecutive numbers are bonded unless their C and N are more than GAP_A apart. Residues whose numbers
    are not consecutive are bonded only if C and N are within bonding distance. All others are separated by a gap.

    close_gaps : whether residues with consecutive numbers are bonded at any distance
    """
    lengths = _peptide_lengths(structure)
    near = close_gaps | (lengths <= GAP_A) | np.isinf(lengths)  # a missing C or N will be built in bonding distance
    bonded = (np.diff(structure.segments) == 0) & ((_follow(structure) & near) | (lengths < POLYMER_BOND_A))
    return replace(structure, segments=np.cumsum(np.concatenate([[False], ~bonded]), dtype=np.int32))


def gap_notes(read: Structure, chains: Structure) -> tuple[str, ...]:
    """Return a note for each gap. read : structure as read; chains : the result of `in_chains`"""
    starts, lengths, follow = read.labels.residue_starts, _peptide_lengths(read), _follow(read)

    def reason(k: int) -> str:
        apart = f"C and N are {lengths[k]:.1f} A apart" if np.isfinite(lengths[k]) else "C or N is missing"
        if follow[k]:
            return f"{apart}, so the chain has a gap between them; `close_gaps=True` bonds them"
        return f"their numbers are not consecutive, and {apart}"

    gaps = np.flatnonzero((np.diff(read.segments) == 0) & (np.diff(chains.segments) != 0))
    return tuple(
        f"{read.where(int(starts[k]))} and {read.labels.residue(int(starts[k + 1]))} are not bonded: {reason(k)}"
        for k in gaps.tolist()
    )


def rings(chains: Structure) -> Indices:
    """Return the first and last residue of each ring, (k, 2): segments without OXT whose ends are within bonding
    distance.

    A ring has at least three residues, as in template matching.
    """
    segments, labels = chains.segments, chains.labels
    firsts = np.flatnonzero(np.diff(segments, prepend=segments[:1] - 1))
    lasts = np.flatnonzero(np.diff(segments, append=segments[-1:] + 1))
    acids = np.searchsorted(labels.residue_starts, np.flatnonzero(labels.names == "OXT"), "right") - 1
    is_ring = (lasts > firsts + 1) & ~np.isin(lasts, acids) & (_lengths(chains, lasts, firsts) < POLYMER_BOND_A)
    return np.stack([firsts[is_ring], lasts[is_ring]], axis=1)


def ring_notes(chains: Structure) -> tuple[str, ...]:
    """Return a note for each ring."""
    starts, labels = chains.labels.residue_starts, chains.labels
    return tuple(
        f"{chains.where(int(starts[first]))} and {labels.residue(int(starts[last]))} are bonded because C and N are "
        "close, so the chain was treated as a ring"
        for first, last in rings(chains).tolist()
    )


def open_notes(atoms: Atoms, source: str) -> tuple[str, ...]:
    """Return a note about backbone atoms that lack a bond, such as at chain ends without terminal atoms."""
    assert atoms.labels is not None
    n_bonds = np.bincount(atoms.bonds.ravel(), minlength=len(atoms))
    waiting = np.flatnonzero(np.isin(atoms.labels.names, ("C", "N")) & (n_bonds < 3))
    if not len(waiting):
        return ()
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return (
        f"{source}: {atoms.labels.atom(int(waiting[0]))}{more}: a chain ends without the atoms of a terminal residue, "
        "so the template of a residue within a chain was used",
    )


def _follow(structure: Structure) -> NDArray[np.bool_]:
    """Return a mask (n_residues - 1,), True if the next residue has the consecutive number."""
    labels, starts = structure.labels, structure.labels.residue_starts
    step = np.diff(labels.residue_numbers[starts])
    codes = labels.insertion_codes[starts]
    return np.asarray((step == 1) | ((step == 0) & (codes[1:] != codes[:-1])))


def _peptide_lengths(structure: Structure) -> Floats:
    """Return distances from each residue's C to the next residue's N, (n_residues - 1,) A; inf if either is missing."""
    residues = np.arange(len(structure.segments))
    return _lengths(structure, residues[:-1], residues[1:])


def _lengths(structure: Structure, before: Indices, after: Indices) -> Floats:
    """Return distances from the C of residues `before` to the N of residues `after`, (m,) A; inf if missing."""
    starts = structure.labels.residue_starts
    places = np.full((2, len(starts), 3), np.inf)
    for which, name in enumerate(("C", "N")):
        atoms = np.flatnonzero(structure.labels.names == name)
        places[which, np.searchsorted(starts, atoms, "right") - 1] = structure.positions[atoms]
    carbons, nitrogens = places[0, before], places[1, after]
    there = np.isfinite(carbons).all(axis=1) & np.isfinite(nitrogens).all(axis=1)
    lengths = np.full(len(there), np.inf)
    lengths[there] = np.linalg.norm(carbons[there] - nitrogens[there], axis=1)
    return lengths
