"""Atoms that a minimization moves: those near the ligand, except excluded ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats, Ints
from .walk import Walk, atoms_among, in_parts

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Region:
    """Choice of atoms that may move.

    include : atoms that may move, None for all; omit : atoms that stay fixed, None for none; masks or indices
    """

    include: ArrayLike | None = None
    omit: ArrayLike | None = None

    def free(self, walk: Walk, row: int, x: Floats, further: Ints | None = None) -> Mask:
        """Return a mask (n,) of the free atoms at positions x (n, 3) A.

        Residues within `Settings.minimization_radius` of a ligand atom and the atoms `further` are free.
        """
        labels = walk.atoms.labels
        assert labels is not None
        near = is_close(x, x[walk.ligand], walk.settings[row].minimization_radius)
        residues = np.zeros(len(labels.residue_starts), bool)
        residues[labels.residue_index[near]] = True
        free: Mask = residues[labels.residue_index]
        if further is not None:
            free[further] = True
        if self.include is not None:
            free &= atoms_among("include", self.include, walk.atoms)
        if self.omit is not None:
            free &= ~atoms_among("omit", self.omit, walk.atoms)
        return free


def is_close(x: Floats, points: Floats, radius: float) -> Mask:
    """Return a mask (n,) of the positions x (n, 3) A that are within a radius of any of the points (m, 3) A.

    All points are compared only if the distance to the first point is inconclusive.
    """
    away, reach = _lengths(x - points[0]), _lengths(points - points[0]).max()
    close: Mask = away <= radius
    left = np.flatnonzero(~close & (away <= radius + reach))
    for part in in_parts(points, len(left)):
        close[left] |= (_lengths(x[left, np.newaxis] - part) <= radius).any(axis=1)
    return close


def _lengths(vectors: Floats) -> Floats:
    """Return the lengths of vectors (..., 3) A."""
    found: Floats = np.sqrt(np.einsum("...k,...k->...", vectors, vectors))
    return found
