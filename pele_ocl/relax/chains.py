"""Bonds between residues of a model, and gaps of its chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Structure
from ..forcefield.bonding import POLYMER_BOND_A

Indices = NDArray[np.intp]

GAP_A = 4.0  # C-N; a bond that a model has torn is shorter, and two pieces with one numbering are farther apart


def in_chains(structure: Structure, close_gaps: bool = False) -> Structure:
    """Return the structure segments within which every residue is bonded to the next one.

    Neighbours whose numbers follow each other are bonded unless their C and N are more than GAP_A apart. If numbers
    jump, they are bonded if C and N are near enough for a bond. Elsewhere the chain has a gap.

    close_gaps : whether neighbours whose numbers follow each other are bonded at any distance
    """
    lengths = _peptide_lengths(structure)
    near = close_gaps | (lengths <= GAP_A) | np.isinf(lengths)  # an atom that is lacking is built where it belongs
    bonded = (np.diff(structure.segments) == 0) & ((_follow(structure) & near) | (lengths < POLYMER_BOND_A))
    return replace(structure, segments=np.cumsum(np.concatenate([[False], ~bonded]), dtype=np.int32))


def gap_notes(read: Structure, chains: Structure) -> tuple[str, ...]:
    """Tell each gap in a sentence. read : as in the file; chains : what `in_chains` made of it"""
    starts, lengths, follow = read.labels.residue_starts, _peptide_lengths(read), _follow(read)

    def reason(k: int) -> str:
        apart = f"C and N are {lengths[k]:.1f} A apart" if np.isfinite(lengths[k]) else "C or N is lacking"
        if follow[k]:
            return f"{apart}, so the chain has a gap between them; `close_gaps=True` bonds them"
        return f"their numbers jump, and {apart}"

    gaps = np.flatnonzero((np.diff(read.segments) == 0) & (np.diff(chains.segments) != 0))
    return tuple(
        f"{read.where(int(starts[k]))} and {read.labels.residue(int(starts[k + 1]))} are not bonded: {reason(k)}"
        for k in gaps.tolist()
    )


def rings(chains: Structure) -> Indices:
    """(k, 2) first and last residue of each ring: a segment with ends near enough for a bond, without OXT.

    It has three residues at least, as in the matching of templates.
    """
    segments, labels = chains.segments, chains.labels
    firsts = np.flatnonzero(np.diff(segments, prepend=segments[:1] - 1))
    lasts = np.flatnonzero(np.diff(segments, append=segments[-1:] + 1))
    acids = np.searchsorted(labels.residue_starts, np.flatnonzero(labels.names == "OXT"), "right") - 1
    is_ring = (lasts > firsts + 1) & ~np.isin(lasts, acids) & (_lengths(chains, lasts, firsts) < POLYMER_BOND_A)
    return np.stack([firsts[is_ring], lasts[is_ring]], axis=1)


def ring_notes(chains: Structure) -> tuple[str, ...]:
    """Tell each ring in a sentence."""
    starts, labels = chains.labels.residue_starts, chains.labels
    return tuple(
        f"{chains.where(int(starts[first]))} and {labels.residue(int(starts[last]))} are bonded: C and N are near, and "
        "so the chain was taken for a ring"
        for first, last in rings(chains).tolist()
    )


def open_notes(atoms: Atoms, source: str) -> tuple[str, ...]:
    """Tell backbone atoms that lack a bond; a file with hydrogens may end a chain as if it went on."""
    assert atoms.labels is not None
    n_bonds = np.bincount(atoms.bonds.ravel(), minlength=len(atoms))
    waiting = np.flatnonzero(np.isin(atoms.labels.names, ("C", "N")) & (n_bonds < 3))
    if not len(waiting):
        return ()
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return (
        f"{source}: {atoms.labels.atom(int(waiting[0]))}{more}: a chain ends without the atoms of a terminal residue, "
        "so the template of a residue within a chain was taken",
    )


def _follow(structure: Structure) -> NDArray[np.bool_]:
    """(n_residues - 1,) whether the number of the next residue follows."""
    labels, starts = structure.labels, structure.labels.residue_starts
    step = np.diff(labels.residue_numbers[starts])
    codes = labels.insertion_codes[starts]
    return np.asarray((step == 1) | ((step == 0) & (codes[1:] != codes[:-1])))


def _peptide_lengths(structure: Structure) -> Floats:
    """(n_residues - 1,) the distance of each residue's C from the next one's N, A; inf where either is lacking."""
    residues = np.arange(len(structure.segments))
    return _lengths(structure, residues[:-1], residues[1:])


def _lengths(structure: Structure, before: Indices, after: Indices) -> Floats:
    """(m,) the distance of the C of some residues from the N of others, A; inf where either is lacking."""
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
