"""Summary of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.notes import one_line
from ...grid import Map


def map_facts(map_: Map) -> dict[str, Any]:
    """Return the shape, origin, spacing, unit and temperature of a map, and the range and mean of its values."""
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


def map_lines(map_: Map) -> list[str]:
    """Describe a map in lines of text."""
    facts = map_facts(map_)
    spacing = f"{facts['spacing'][0]:g}" if np.ptp(map_.grid.spacing) == 0 else _three(facts["spacing"], "g")
    return [
        f"Points        {' x '.join(f'{n:,}' for n in map_.grid.shape)}, {spacing} A apart",
        f"From          {_three(facts['origin'], '.3f')} A",
        f"To            {_three(map_.grid.last.tolist(), '.3f')} A",
        f"Values        {facts['min']:,.6g} to {facts['max']:,.6g}, mean {facts['mean']:,.6g} "
        + (one_line(map_.full_unit) or "(no unit in the file)"),
    ]


def _three(numbers: list[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in numbers)
