"""Bonds of a matched structure, within and between residues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..atoms import Ints, Structure
from ..common.notes import Note
from .matching import Match, disulphides

# A peptide bond C-N is 1.33 A long, O3'-P 1.61 A; such atoms without a bond are more than 2.2 A apart.
POLYMER_BOND_A = 2.0


class Bonding(NamedTuple):
    """All bonds (m, 2), i < j, sorted; bonds between residues (k, 2), in the order of residues; notes on chain ends."""

    bonds: Ints
    crossing: Ints
    notes: tuple[str, ...]


def bonding_of(structure: Structure, matches: Sequence[Match], whole_segments: bool = False) -> Bonding:
    """Find the bonds of a structure with matched templates. whole_segments : as in ForceField"""
    starts = structure.labels.residue_starts.tolist()
    inside = [m.bonds + start for m, start in zip(matches, starts, strict=True)]
    polymer, notes = _polymer_bonds(structure, matches, whole_segments)
    bridges, more_notes = _bridges(structure, matches)
    crossing = np.concatenate([polymer, bridges]).astype(np.int32).reshape(-1, 2)
    i, j = np.concatenate([*inside, crossing]).astype(np.int64).T
    codes = np.sort(np.minimum(i, j) * len(structure.labels) + np.maximum(i, j))
    codes = codes[np.diff(codes, prepend=-1) > 0]
    bonds = np.stack(np.divmod(codes, len(structure.labels)), axis=1).astype(np.int32)
    return Bonding(bonds, crossing, notes + more_notes)


def _open_atoms(structure: Structure, matches: Sequence[Match], end: str) -> Ints:
    """Return the atom of each residue with an open valence ("head", "tail" or "thiol"), (n_residues,); -1 if none."""
    atoms = np.full(len(matches), -1, np.int32)
    for r, (match, start) in enumerate(zip(matches, structure.labels.residue_starts.tolist(), strict=True)):
        local = getattr(match.template, end)
        if local >= 0:
            atoms[r] = start + int(match.places[local]) if match.places[local] >= 0 else -1
    return atoms


def _polymer_bonds(
    structure: Structure, matches: Sequence[Match], whole_segments: bool
) -> tuple[Ints, tuple[str, ...]]:  # fmt: skip
    """Find the C-N and O3'-P bonds of consecutive residues, and of the last and first residue of a ring."""
    heads, tails = _open_atoms(structure, matches, "head"), _open_atoms(structure, matches, "tail")
    segments = structure.segments
    before, after = _neighbours(segments)
    both = (tails[before] >= 0) & (heads[after] >= 0)
    before, after = before[both], after[both]
    i, j = tails[before], heads[after]
    within = (segments[before] == segments[after]) & (after == before + 1)
    near = np.linalg.norm(structure.positions[i] - structure.positions[j], axis=1) < POLYMER_BOND_A
    bonded = near | (within & whole_segments)
    bonds = np.stack([i[bonded], j[bonded]], axis=1)
    gaps = np.flatnonzero(~bonded & within)
    notes = [_gap_note(structure, int(i[k]), int(j[k])) for k in gaps]
    done = np.concatenate([bonds.ravel(), i[gaps], j[gaps]])
    waiting = sorted({*heads.tolist(), *tails.tolist()} - {-1, *done.tolist()})
    if waiting:
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        notes.append(
            Note(
                f"{structure.where(waiting[0])}{more}: a chain ends without the atoms of a terminal residue, "
                "so the template of a residue within a chain was used",
                code="chain_end",
            )
        )
    return bonds, tuple(notes)


def _neighbours(segments: Ints) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return pairs of residues that may be bonded: consecutive ones, and the last and first of each segment."""
    residues = np.arange(len(segments))
    ends = np.flatnonzero(np.diff(segments, append=segments[-1:] + 1))
    begins = np.flatnonzero(np.diff(segments, prepend=segments[:1] - 1))
    long = ends > begins + 1
    return np.concatenate([residues[:-1], ends[long]]), np.concatenate([residues[1:], begins[long]])


def _gap_note(structure: Structure, i: int, j: int) -> str:
    distance = float(np.linalg.norm(structure.positions[i] - structure.positions[j]))
    return Note(
        f"{structure.where(i)} and {structure.labels.atom(j)} are {distance:.1f} A apart, so the chain has a gap "
        "between them and they are not bonded",
        code="gap",
    )


def _bridges(structure: Structure, matches: Sequence[Match]) -> tuple[Ints, tuple[str, ...]]:
    """Find disulphide bonds. Also returns a note for each half cystine without a partner."""
    thiols = _open_atoms(structure, matches, "thiol")
    pairs = disulphides(structure)
    pairs = pairs[np.isin(pairs, thiols).all(axis=1)]
    half = [t for r, t in enumerate(thiols) if matches[r].template.name.startswith("CYX") and t not in pairs and t >= 0]
    notes = [
        Note(f"{structure.where(t)} has the template of a half cystine, but no other SG is near", code="disulphide")
        for t in half
    ]
    return pairs, tuple(notes)
