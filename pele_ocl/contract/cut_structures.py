"""Repair of structures with molecules split by the periodic cell, before bonds are assigned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..atoms import Structure

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

BOND = 2.0  # A, between residues of a chain
_LINKS = (("C", "N"), ("O3'", "P"), ("O3*", "P"))  # bonded atoms of consecutive residues
_SHORTER = 0.5  # A; a residue counts as split if imaging shortens its longest step by more than this


def whole_structure(structure: Structure, cell: Floats | None) -> Structure:
    """Make molecules split by the periodic cell whole, and add a note. Other structures are returned unchanged.

    cell : (3, 3) A, None without a cell
    """
    bonds = None if cell is None else cut_bonds(structure, cell)
    if cell is None or bonds is None:
        return structure
    from .imaging import CUT_NOTE, Imager  # rarely needed

    positions, moved = Imager(len(structure.labels), bonds)(structure.positions[np.newaxis], cell[np.newaxis])
    if not moved[0]:
        return structure
    return replace(structure, positions=positions[0], notes=(*structure.notes, CUT_NOTE))


def cut_bonds(structure: Structure, cell: Floats) -> NDArray[np.int32] | None:
    """Return pairs (m, 2) of atoms that connect the molecules, or None if no molecule is split.

    Atoms of split residues are connected by the shortest steps.
    """
    if not np.isfinite(structure.positions).all():
        return None
    from .cells import reduced

    cell = reduced(cell) @ cell
    starts = structure.labels.residue_starts.astype(np.intp)
    first = starts[structure.labels.residue_index - structure.labels.residue_index[0]]
    pairs = np.stack([first, np.arange(len(first))], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    wide = np.rint((structure.positions[pairs[:, 1]] - structure.positions[pairs[:, 0]]) @ np.linalg.inv(cell)).any(
        axis=1
    )
    trees = [_tree(structure.positions, start, ends, cell) for start, ends in _spans(starts, first, pairs[wide, 0])]
    links, cut_link = _links(structure, cell)
    if not cut_link and not any(cut for _, cut in trees):
        return None
    kept = pairs[~np.isin(pairs[:, 0], pairs[wide, 0])]
    return np.concatenate([kept, links, *(tree for tree, _ in trees)]).astype(np.int32)


def _spans(starts: Indices, first: Indices, wide: Indices) -> list[tuple[int, int]]:
    """Return the first atom and the end of residues. wide : first atoms of these residues"""
    ends = np.append(starts[1:], len(first))
    return [(int(start), int(ends[np.searchsorted(starts, start)])) for start in np.unique(wide)]


def _tree(positions: Floats, start: int, end: int, cell: Floats) -> tuple[Indices, bool]:
    """Return pairs (m - 1, 2) that connect the nearest images of a residue's atoms, and whether it is split."""
    through, longest = _joined(positions[start:end], cell)
    _, in_place = _joined(positions[start:end], None)
    return through + start, in_place > longest + _SHORTER


def _joined(places: Floats, cell: Floats | None) -> tuple[Indices, float]:
    """Return the minimum spanning tree of points (m, 3), by Prim's algorithm, and the length of its longest edge."""
    inverse = None if cell is None else np.linalg.inv(cell)
    left = np.ones(len(places), np.bool_)
    nearest, parents = np.full(len(places), np.inf), np.zeros(len(places), np.intp)
    pairs, longest, k = list[tuple[int, int]](), 0.0, 0
    for _ in range(len(places) - 1):
        left[k] = False
        apart = places - places[k]
        if cell is not None and inverse is not None:
            apart -= np.rint(apart @ inverse) @ cell
        away = np.linalg.norm(apart, axis=1)
        nearer = left & (away < nearest)
        nearest[nearer], parents[nearer] = away[nearer], k
        k = int(np.where(left, nearest, np.inf).argmin())
        pairs.append((int(parents[k]), k))
        longest = max(longest, float(nearest[k]))
    return np.array(pairs, np.intp).reshape(-1, 2), longest


def _links(structure: Structure, cell: Floats) -> tuple[Indices, bool]:
    """Return pairs (m, 2) of bonded atoms between residues of a chain, and whether any bond is split."""
    labels, inverse = structure.labels, np.linalg.inv(cell)
    residues = labels.residue_index - labels.residue_index[0]
    found, cut = [np.empty((0, 2), np.intp)], False
    for tail, head in _LINKS:
        ends = [np.full(len(labels.residue_starts) + 1, -1) for _ in range(2)]
        for of, name in zip(ends, (tail, head), strict=True):
            chosen = np.flatnonzero(labels.names == name)
            of[residues[chosen]] = chosen
        tails, heads = ends[0][:-2], ends[1][1:-1]
        there = (tails >= 0) & (heads >= 0) & (np.diff(structure.segments) == 0)
        pairs = np.stack([tails[there], heads[there]], axis=1)
        apart = structure.positions[pairs[:, 1]] - structure.positions[pairs[:, 0]]
        near = np.linalg.norm(apart - np.rint(apart @ inverse) @ cell, axis=1) < BOND
        cut |= bool((near & (np.linalg.norm(apart, axis=1) >= BOND)).any())
        found.append(pairs[near])
    return np.concatenate(found), cut
