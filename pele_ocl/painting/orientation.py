"""View direction of a molecule."""

from __future__ import annotations

import numpy as np

from ..atoms import Floats


def principal_axes(positions: Floats) -> Floats:
    """Return right-handed view axes as unit rows (3, 3): right (longest extent), up, and towards the viewer."""
    centred = positions - positions.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    right, up = (_signed(axis) for axis in axes.T[:0:-1])
    return np.stack([right, up, np.cross(right, up)])


def _signed(axis: Floats) -> Floats:
    """Return the axis or its opposite, so that the largest component is positive and the view is reproducible."""
    return axis if axis[np.abs(axis).argmax()] > 0 else -axis
