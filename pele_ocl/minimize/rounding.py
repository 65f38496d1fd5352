"""Gradient that a minimum gets when its positions are rounded, as files with few decimals round them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats


def rounding_gradient(atoms: Atoms, decimals: int) -> float:
    """Estimate the rms gradient, kcal/mol/A, of a minimum whose positions are rounded to so many decimals of an A.

    It is what rounding changes in the forces of bonds and Urey-Bradley terms, the stiffest terms by far; angles and
    near pairs add a little. 0 for atoms without bonded terms.
    """
    rounded, change = np.round(atoms.positions, decimals), np.zeros_like(atoms.positions)
    if atoms.bonded is None:
        return 0.0
    for table in (atoms.bonded.bonds, atoms.bonded.urey_bradley):
        pull = _pulls(rounded, table.atoms, table.parameters) - _pulls(atoms.positions, table.atoms, table.parameters)
        np.add.at(change, table.atoms[:, 0], pull)
        np.add.at(change, table.atoms[:, 1], -pull)
    return float(np.sqrt((change**2).sum(axis=1).mean()))


def _pulls(positions: Floats, pairs: NDArray[np.int32], parameters: Floats) -> Floats:
    """Return the slopes (m, 3) of k (r - r0)^2 at the first atom of each pair, kcal/mol/A."""
    away = positions[pairs[:, 0]] - positions[pairs[:, 1]]
    r = np.linalg.norm(away, axis=1)
    pulls: Floats = (2 * parameters[:, 0] * (r - parameters[:, 1]) / np.maximum(r, 1e-9))[:, None] * away
    return pulls
