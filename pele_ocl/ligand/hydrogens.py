"""Add missing hydrogens to a residue from the geometry of its molecule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..atoms import Floats, Labels, Structure
from ..atoms.graphs import Graph, Indices, Matching, bonds_by_distance

_SECOND = 0.1  # weight of second neighbours in superpositions
_NEW = -1


def lacking(ours: Graph, positions: Floats, elements: Sequence[str], theirs: Floats) -> Indices | None:
    """Return the residue's atom for each atom of the molecule, -1 for missing hydrogens; None if they do not match.

    positions : (n, 3) A of the molecule; elements, theirs : elements (k,) and positions (k, 3) A of the residue
    """
    symbols = ["H" if of in ("D", "T") else of for of in elements]
    heavy = [k for k, of in enumerate(symbols) if of != "H"]
    if len(heavy) != len(ours.heavy) or not heavy:
        return None
    part = [symbols[k] for k in heavy]
    graph = Graph.of(part, bonds_by_distance(part, theirs[heavy]))
    found = Matching(ours.part(ours.heavy), graph).best()
    if found is None:
        return None
    order: Indices = np.full(len(ours), _NEW, np.intp)
    order[ours.heavy] = np.array(heavy, np.intp)[found]
    placed = with_hydrogens(ours, positions, order, theirs)
    back = {int(order[i]): int(i) for i in ours.heavy}
    for k in (k for k, of in enumerate(symbols) if of == "H"):
        parent = heavy[int(np.linalg.norm(theirs[heavy] - theirs[k], axis=1).argmin())]
        free = [i for i in ours.neighbours[back[parent]] if ours.elements[i] == "H" and order[i] == _NEW]
        if not free:
            return None  # this atom has more hydrogens than in the molecule
        order[min(free, key=lambda i: float(np.linalg.norm(placed[i] - theirs[k])))] = k
    return order


def with_hydrogens(ours: Graph, positions: Floats, order: Indices, theirs: Floats) -> Floats:
    """Return the positions of all atoms of a molecule in a residue, (n, 3) A; missing ones are placed by geometry.

    The neighbourhood of an atom, up to second neighbours, is superposed on the residue. The hydrogen of an atom with
    three other neighbours is placed opposite to them, regardless of chirality.
    """
    found = np.where((order >= 0)[:, None], theirs[order], positions)
    for i in ours.heavy.tolist():
        new = [j for j in ours.neighbours[i] if order[j] == _NEW]
        if not new:
            continue
        first = [j for j in ours.neighbours[i] if order[j] != _NEW]
        away = found[first] - found[i]
        if len(first) == 3 and len(new) == 1:
            units = away / np.linalg.norm(away, axis=1, keepdims=True)
            mean = units.sum(axis=0)
            if np.linalg.norm(mean) > 0.3:
                length = float(np.linalg.norm(positions[new[0]] - positions[i]))
                found[new[0]] = found[i] - mean / np.linalg.norm(mean) * length
                continue
        second = [k for j in first for k in ours.neighbours[j] if order[k] != _NEW and k != i and k not in first]
        frame = [i, *first, *second]
        weights = np.array([1.0] * (1 + len(first)) + [_SECOND] * len(second))
        rotation = _rotation(positions[frame] - positions[i], found[frame] - found[i], weights)
        found[new] = (positions[new] - positions[i]) @ rotation.T + found[i]
    return found


def _rotation(one: Floats, other: Floats, weights: Floats) -> Floats:
    """Return the rotation (3, 3) that best superposes vectors on others (Kabsch 1976)."""
    u, _, v = np.linalg.svd((one * weights[:, None]).T @ other)
    sign = np.sign(np.linalg.det(u @ v)) or 1.0
    rotation: Floats = (u @ np.diag([1.0, 1.0, sign]) @ v).T
    return rotation


def inserted(structure: Structure, behind: Sequence[int], names: Sequence[str], positions: Floats) -> Structure:
    """Insert hydrogens after given atoms of a structure, in the same residues.

    behind : (m,) atoms after which to insert; names, positions : (m,) and (m, 3) A
    """
    at, labels = np.array(behind, np.intp) + 1, structure.labels
    own = np.array(behind, np.intp)
    columns = {
        name: np.insert(getattr(labels, name), at, getattr(labels, name)[own])
        for name in ("residue_names", "residue_numbers", "insertion_codes", "chains", "residue_index")
    }
    widest = max([labels.names.dtype.itemsize // 4, *map(len, names)])
    more = Labels(
        names=np.insert(labels.names.astype(f"U{widest}"), at, np.array(names, f"U{widest}")),
        elements=np.insert(labels.elements, at, "H"), **columns,
    )  # fmt: skip
    return replace(
        structure, positions=np.insert(structure.positions, at, positions, axis=0), labels=more,
        lines=np.insert(structure.lines, at, 0),
    )  # fmt: skip
