"""Bicubic polynomials through the values of a CMAP map, eq. 7 of docs/theory/bonded.md."""

from __future__ import annotations

import numpy as np

from ...atoms import Floats

# From values and slopes at the ends of an interval, (f0, f1, f'0, f'1), to the coefficients of its cubic polynomial.
HERMITE: Floats = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], np.float64)


def periodic_slopes(values: Floats) -> Floats:
    """Slopes of the periodic cubic spline through the values along the first axis, (s, ...), at steps of 1."""
    s = len(values)
    ring = 4 * np.eye(s) + np.roll(np.eye(s), 1, axis=0) + np.roll(np.eye(s), -1, axis=0)
    rises = 3 * (np.roll(values, -1, axis=0) - np.roll(values, 1, axis=0))
    return np.linalg.solve(ring, rises).astype(np.float64)


def patches(values: Floats) -> Floats:
    """Coefficients of each cell of a periodic map (s, s), for powers of the distance into the cell, (s, s, 4, 4)."""
    first = periodic_slopes(values)
    second = periodic_slopes(values.T).T
    both = periodic_slopes(first.T).T

    def corners(of: Floats) -> Floats:
        """Values at the four corners of the cells, (s, s, 2, 2)."""
        right = np.roll(of, -1, axis=0)
        columns = [np.stack([edge, np.roll(edge, -1, axis=1)], axis=-1) for edge in (of, right)]
        return np.stack(columns, axis=-2)

    known = np.concatenate(
        [
            np.concatenate([corners(values), corners(second)], axis=-1),
            np.concatenate([corners(first), corners(both)], axis=-1),
        ],
        axis=-2,
    )
    found: Floats = HERMITE @ known @ HERMITE.T
    return found
