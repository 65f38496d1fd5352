"""Direction from which a molecule is looked at."""

from __future__ import annotations

import numpy as np

from ..atoms import Floats


def principal_axes(positions: Floats) -> Floats:
    """Rows (3, 3) of length 1, right-handed: to the right, the longest extent of the positions; up; to the viewer, the
    shortest."""
    centred = positions - positions.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    right, up = (_signed(axis) for axis in axes.T[:0:-1])
    return np.stack([right, up, np.cross(right, up)])


def _signed(axis: Floats) -> Floats:
    """Return the axis or its opposite, whichever has its largest component positive: one way for one molecule."""
    return axis if axis[np.abs(axis).argmax()] > 0 else -axis
