"""Which residues of a model are bonded to the next one: those of a chain are, however far a model tears them apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..atoms import Structure
from ..forcefield.bonding import POLYMER_BOND_A


def in_chains(structure: Structure) -> Structure:
    """The structure with segments within which every residue is bonded to the next one.

    Predicted models have every residue, so neighbours whose numbers follow each other are bonded whatever their
    distance. Where numbers jump, they are if their C and N are near enough for a bond; else the chain has a gap there.
    """
    whole = np.diff(structure.segments) == 0
    bonded = whole & (_follow(structure) | (_peptide_lengths(structure) < POLYMER_BOND_A))
    return replace(structure, segments=np.cumsum(np.concatenate([[False], ~bonded]), dtype=np.int32))


def gap_notes(read: Structure, chains: Structure) -> tuple[str, ...]:
    """A sentence about each gap. read : as the file has it; chains : what `in_chains` made of it"""
    starts, lengths = read.labels.residue_starts, _peptide_lengths(read)
    gaps = np.flatnonzero((np.diff(read.segments) == 0) & (np.diff(chains.segments) != 0))
    return tuple(
        f"{read.where(int(starts[k]))} and {read.labels.residue(int(starts[k + 1]))} are not bonded: their numbers "
        f"jump, and {f'C and N are {lengths[k]:.1f} A apart' if np.isfinite(lengths[k]) else 'C or N is lacking'}"
        for k in gaps.tolist()
    )


def _follow(structure: Structure) -> NDArray[np.bool_]:
    """(n_residues - 1,) whether the number of the next residue follows."""
    labels, starts = structure.labels, structure.labels.residue_starts
    step = np.diff(labels.residue_numbers[starts])
    codes = labels.insertion_codes[starts]
    return np.asarray((step == 1) | ((step == 0) & (codes[1:] != codes[:-1])))


def _peptide_lengths(structure: Structure) -> NDArray[np.float64]:
    """(n_residues - 1,) the distance of each residue's C from the next one's N, A; inf where either is lacking."""
    starts = structure.labels.residue_starts
    places = np.full((2, len(starts), 3), np.inf)
    for which, name in enumerate(("C", "N")):
        atoms = np.flatnonzero(structure.labels.names == name)
        places[which, np.searchsorted(starts, atoms, "right") - 1] = structure.positions[atoms]
    carbons, nitrogens = places[0, :-1], places[1, 1:]
    there = np.isfinite(carbons).all(axis=1) & np.isfinite(nitrogens).all(axis=1)
    lengths = np.full(len(there), np.inf)
    lengths[there] = np.linalg.norm(carbons[there] - nitrogens[there], axis=1)
    return lengths
