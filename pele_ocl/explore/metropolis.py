"""Rule of Metropolis, at a temperature that makes a search of the walk."""

from __future__ import annotations

import math

BOLTZMANN = 0.0019872  # kcal/mol/K


def is_accepted(rise: float, temperature: float, drawn: float) -> bool:
    """Return whether a step is kept.

    rise : kcal/mol of the energy; NaN is not accepted
    temperature : K; drawn : uniform in (0, 1)
    """
    return rise < 0 or (temperature > 0 and math.exp(-rise / (BOLTZMANN * temperature)) > drawn)
