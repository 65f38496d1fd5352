"""Energies and gradients for libraries that differentiate, with what conformations get that cannot be computed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats

Failed = Literal["raise", "nan", "inf"]


def evaluated(plan: Any, positions: NDArray[Any], failed: Failed) -> tuple[Floats, Floats | None]:
    """Energies (...,) and gradients (..., n, 3) of positions (..., n, 3) A, these None of a plan without any.

    plan : of energies; failed : "raise" for an InputError, "nan" for NaN, "inf" for +inf and a gradient of 0
    """
    together = positions.reshape(-1, *positions.shape[-2:])
    batch = plan.evaluate_batch(together) if failed == "raise" else plan.evaluate_batch(together, errors="record")
    total, gradients = np.array(batch.total), None if batch.gradients is None else np.array(batch.gradients)
    if failed == "inf":
        bad = list(batch.errors)
        total[bad] = np.inf
        if gradients is not None:
            gradients[bad] = 0
    return total.reshape(positions.shape[:-2]), None if gradients is None else gradients.reshape(positions.shape)
