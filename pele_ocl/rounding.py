"""Charges in float32 whose sums are right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .atoms import Floats


def rounded_charges(charges: Floats) -> NDArray[np.float32]:
    """Charges in float32 whose running sums are right to the last digit.

    Rounded one by one, the same atom of every residue is off by the same amount, and a large molecule by the sum of it.
    """
    digit = 2.0 ** (np.ceil(np.log2(max(float(np.abs(charges).max()), 1e-30))) - 24)
    rounded: NDArray[np.float32] = (np.diff(np.round(np.cumsum(charges) / digit), prepend=0.0) * digit).astype(
        np.float32
    )
    return rounded
