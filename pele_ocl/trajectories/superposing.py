"""Least-squares superposition of frames on a reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from .files import Positions
from .selection import Selection, described_atoms, selected_atoms

_THIN = 1e-3  # minimum RMS distance of the atoms from a line, A, for a unique rotation


class Superposition:
    """Least-squares superposition: W. Kabsch, Acta Cryst. A 34, 827 (1978).

    chosen : (k,) indices of the atoms to superpose; words : selection of these atoms
    """

    def __init__(self, reference: Atoms, align: Selection | bool = True) -> None:
        """Set up the superposition.

        align : a selection, or True for the alpha carbons of a protein, or all heavy atoms if there are none

        Raises InputError for fewer than three atoms or collinear atoms.
        """
        self.words, self.chosen = _chosen(reference, align)
        points = reference.positions[self.chosen]
        self._middle = points.mean(axis=0)
        self._points = points - self._middle
        n = len(points)
        if n < 3 or np.linalg.svd(self._points, compute_uv=False)[1] < _THIN * np.sqrt(n):
            raise InputError(
                f"the {n:,} atoms of {self.words!r} are collinear or fewer than three; superpose by other atoms"
            )

    def __call__(self, positions: Positions) -> tuple[Floats, Floats]:
        """Superpose positions (m, n, 3) A. Also returns the RMSD (m,) A of the chosen atoms.

        Frames with positions that are not finite are unchanged, with an RMSD of NaN.
        """
        found, distances = np.array(positions, np.float64), np.full(len(positions), np.nan)
        finite = np.isfinite(found[:, self.chosen]).all(axis=(1, 2))
        points = found[finite][:, self.chosen]
        middles = points.mean(axis=1, keepdims=True)
        points = points - middles
        turns, sizes = turns_onto(self._points, points)
        squares = (points**2).sum(axis=(1, 2)) + (self._points**2).sum() - 2 * sizes.sum(axis=1)
        with np.errstate(invalid="ignore"):  # other atoms may be NaN
            found[finite] = (found[finite] - middles) @ turns + self._middle
        distances[finite] = np.sqrt(np.maximum(squares, 0) / len(self.chosen))
        return found, distances


def turns_onto(reference: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Find the rotations that superpose points on a reference, as points @ rotation (W. Kabsch 1978).

    reference : (k, 3) A, centred; points : (m, k, 3) A, each frame centred

    Returns the proper rotations (m, 3, 3) and their singular values (m, 3), A^2.
    """
    u, sizes, vt = np.linalg.svd(points.transpose(0, 2, 1) @ reference)
    mirrors = np.linalg.det(u @ vt) < 0
    u[mirrors, :, -1] *= -1
    sizes[mirrors, -1] *= -1
    return u @ vt, sizes


def _chosen(reference: Atoms, align: Selection | bool) -> tuple[str, NDArray[np.intp]]:
    """Return the text of a selection, or a description, and the indices (k,) of its atoms."""
    names = described_atoms(reference)
    if not isinstance(align, bool):
        words = align if isinstance(align, str) else "the selection"
        return words, selected_atoms(align, len(reference), names)
    if names is None:
        return "all", np.arange(len(reference), dtype=np.intp)
    alpha_carbons = names.of_kind("protein") & (names.names.names == "CA")
    if np.count_nonzero(alpha_carbons) >= 3:
        return "protein and name CA", np.flatnonzero(alpha_carbons)
    return "heavy", np.flatnonzero(~names.hydrogens)
