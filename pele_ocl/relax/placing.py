"""Atoms that a model lacks, placed about those it has as they stand in a complete model of the same molecule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Placing:
    """From the positions of some atoms to those of all n.

    own : (n,) index of each atom among those that models bring, -1 where they lack it
    added : (k,) the others; frames : (k, 3) three atoms near each, by their index among those that models bring
    local : (k, 3) where each stands in the axes of its three, A
    """

    own: Indices
    added: Indices
    frames: Indices
    local: Floats

    @classmethod
    def of(cls, positions: Floats, bonds: Ints, own: Indices) -> Placing:
        """By a complete model at positions (n, 3) A. bonds : (m, 2)"""
        neighbours: list[list[int]] = [[] for _ in range(len(positions))]
        for i, j in bonds.tolist():
            neighbours[i].append(j)
            neighbours[j].append(i)
        added = np.flatnonzero(own < 0)
        near = np.array([_nearest(i, neighbours, own) for i in added.tolist()], np.intp).reshape(-1, 3)
        origins, axes = _axes(positions[near])
        local = np.einsum("kij,kj->ki", axes, positions[added] - origins)
        return cls(own, added, own[near], local)

    def placed(self, positions: Floats) -> Floats:
        """All atoms (n, 3) A, of the positions that a model brings."""
        found = positions[self.own]
        origins, axes = _axes(positions[self.frames])
        found[self.added] = origins + np.einsum("kij,ki->kj", axes, self.local)
        return np.asarray(found)


def _nearest(atom: int, neighbours: Sequence[Sequence[int]], own: Indices) -> list[int]:
    """The three atoms that models bring and that are the fewest bonds away."""
    found, level, seen = list[int](), [atom], {atom}
    while level and len(found) < 3:
        level = sorted({j for i in level for j in neighbours[i]} - seen)
        seen.update(level)
        found += [i for i in level if own[i] >= 0]
    if len(found) < 3:  # of a molecule of one or two heavy atoms
        found += [i for i in np.flatnonzero(own >= 0).tolist() if i not in found]
    return (found * 3)[:3]


def _axes(three: Floats) -> tuple[Floats, Floats]:
    """Origins (k, 3) and the rows of axes (k, 3, 3) by three atoms (k, 3, 3) each."""
    origin, second, third = three.swapaxes(0, 1)
    first_axis = _unit(second - origin)
    last_axis = _unit(np.cross(first_axis, third - origin))
    return origin, np.stack([first_axis, np.cross(last_axis, first_axis), last_axis], axis=1)


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
