"""A map in figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...grid import Map


def map_facts(map_: Map) -> dict[str, Any]:
    """Shape, origin and spacing along x, y and z, the unit, and the values' extremes and mean, as JSON has them."""
    return {
        "shape": list(map_.grid.shape),
        "origin": map_.grid.origin.tolist(),
        "spacing": map_.grid.spacing.tolist(),
        "unit": map_.unit,
        "temperature": map_.temperature,
        "min": float(map_.values.min()),
        "max": float(map_.values.max()),
        "mean": float(map_.values.mean(dtype=np.float64)),
    }
