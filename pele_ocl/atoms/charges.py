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
    rounded = charges.astype(np.float32)
    largest = max(float(charges.max(initial=0.0)), -float(charges.min(initial=0.0)), 1e-30)
    digit = 2.0 ** (np.ceil(np.log2(largest)) - 24)
    left_over = charges - rounded
    np.cumsum(left_over, out=left_over)
    left_over /= digit
    np.rint(left_over, out=left_over)
    left_over *= digit
    left_over[1:] -= left_over[:-1].copy()
    left_over += rounded
    return left_over.astype(np.float32)
