"""Frames turned and moved so that chosen atoms lie on a reference's as well as they can."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from .files import Positions
from .selection import Selection, described_atoms, selected_atoms

_THIN = 1e-3  # A, root mean square from a line, of atoms that leave a turn around it open


class Superposition:
    """Turn and move of least square distances: W. Kabsch, Acta Cryst. A 34, 827 (1978).

    chosen : (k,) indices of the atoms by which frames are superposed; words : how they were chosen
    """

    def __init__(self, reference: Atoms, align: Selection | bool = True) -> None:
        """align : a selection, or True for the alpha carbons of a protein, and the heavy atoms of what has none.

        Raises InputError for fewer than three atoms, or atoms on a line.
        """
        self.words, self.chosen = _chosen(reference, align)
        points = reference.positions[self.chosen]
        self._middle = points.mean(axis=0)
        self._points = points - self._middle
        n = len(points)
        if n < 3 or np.linalg.svd(self._points, compute_uv=False)[1] < _THIN * np.sqrt(n):
            raise InputError(
                f"the {n:,} atoms of {self.words!r} stand on a line or are fewer than three; superpose by other atoms"
            )

    def __call__(self, positions: Positions) -> tuple[Floats, Floats]:
        """Positions (m, n, 3) A superposed, and the root mean square distance (m,) A of the chosen atoms after it.

        Frames whose positions are not finite stay as they are, at a distance of NaN.
        """
        found, distances = np.array(positions, np.float64), np.full(len(positions), np.nan)
        finite = np.isfinite(found[:, self.chosen]).all(axis=(1, 2))
        points = found[finite][:, self.chosen]
        middles = points.mean(axis=1, keepdims=True)
        points = points - middles
        turns, sizes = turns_onto(self._points, points)
        squares = (points**2).sum(axis=(1, 2)) + (self._points**2).sum() - 2 * sizes.sum(axis=1)
        with np.errstate(invalid="ignore"):  # atoms elsewhere that are nowhere stay so
            found[finite] = (found[finite] - middles) @ turns + self._middle
        distances[finite] = np.sqrt(np.maximum(squares, 0) / len(self.chosen))
        return found, distances


def turns_onto(reference: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Find the turns of least square distances: points @ turn lies on the reference (W. Kabsch 1978).

    reference : (k, 3) A about its middle; points : (m, k, 3) A, each frame about its own

    Returns the turns (m, 3, 3), which mirror nothing, and their singular values (m, 3), A^2.
    """
    u, sizes, vt = np.linalg.svd(points.transpose(0, 2, 1) @ reference)
    mirrors = np.linalg.det(u @ vt) < 0
    u[mirrors, :, -1] *= -1
    sizes[mirrors, -1] *= -1
    return u @ vt, sizes


def _chosen(reference: Atoms, align: Selection | bool) -> tuple[str, NDArray[np.intp]]:
    """Return the words of a selection, or a name for it, and the indices (k,) of its atoms."""
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
