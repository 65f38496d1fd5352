"""Energies and gradients of samples for libraries that differentiate; a sample that fails can be NaN or infinite."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats

Failed = Literal["raise", "nan", "inf"]


def evaluated(plan: Any, positions: NDArray[Any], failed: Failed) -> tuple[Floats, Floats | None]:
    """Energies (...,) and gradients (..., n, 3) of positions (..., n, 3) A, these None of a plan without any.

    plan : Energy or Nonbond; failed : "raise", "nan" or "inf", as of pele_ocl.torch.energies
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
