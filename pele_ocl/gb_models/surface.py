"""Surface points and atomic parameters of the SGB models."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import ParameterError

WORDS = 64  # bit masks of 32 points each
POINTS = 32 * WORDS  # per sphere


def unit_points(n: int = POINTS) -> Floats:
    """Return n points of equal area on the unit sphere along a Fibonacci spiral, (n, 3)."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), z])


def sgb_figures(atoms: Atoms, name: str) -> Floats:
    """Return Atoms.sgb, (n, 4). name : the GB model. Raises ParameterError if an atom has no SGB parameters."""
    assert atoms.sgb is not None
    lacking = np.flatnonzero(np.isnan(atoms.sgb).any(axis=1))
    if len(lacking):
        raise ParameterError(
            f"{atoms.describe(int(lacking[0]))} has no SGB parameters, which {name} needs: columns 5 to 8 of NBON in "
            "its template are 0; create the template with OPLS2005"
        )
    return atoms.sgb
