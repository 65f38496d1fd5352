"""Atoms that a minimisation moves: near the ligand, less what is left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats, Ints
from .walk import Walk, atoms_among

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Region:
    """Choice of atoms that may move.

    include : atoms that may move, None for all; omit : atoms that never move, None for none; masks or indices
    """

    include: ArrayLike | None = None
    omit: ArrayLike | None = None

    def free(self, walk: Walk, row: int, x: Floats, further: Ints | None = None) -> Mask:
        """Tell of each atom (n,) if it is free at positions x (n, 3) A.

        Free are residues within `Settings.minimization_radius` of a ligand atom, and atoms `further`.
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
    """Tell of positions x (n, 3) A, (n,), if any of some points (m, 3) A is within a radius.

    Atoms that one point finds are not asked of the next: with a wide radius one pass is all.
    """
    close = np.zeros(len(x), bool)
    left = np.flatnonzero(((x >= points.min(axis=0) - radius) & (x <= points.max(axis=0) + radius)).all(axis=1))
    for point in points:
        found = ((x[left] - point) ** 2).sum(axis=1) <= radius**2
        close[left[found]] = True
        left = left[~found]
        if not len(left):
            break
    return close
