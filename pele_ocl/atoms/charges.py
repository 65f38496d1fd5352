"""Rounding of charges to float32."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .labels import Floats


def rounded_charges(charges: Floats) -> NDArray[np.float32]:
    """Round charges to float32 such that their running sums are accurate to the last digit of the largest charge.

    If charges were rounded independently, the errors of equal residues would add up in large molecules. Once the
    accumulated rounding error reaches that digit, it is added to the current charge.
    """
    rounded = charges.astype(np.float32).astype(np.float64)
    digit = 2.0 ** (np.ceil(np.log2(max(float(np.abs(charges).max(initial=0.0)), 1e-30))) - 24)
    left_over = np.round(np.cumsum(charges - rounded) / digit) * digit
    result: NDArray[np.float32] = (rounded + np.diff(left_over, prepend=0.0)).astype(np.float32)
    return result
