"""How times are taken and told."""

from __future__ import annotations

from collections.abc import Callable


def mean_of_middle(measure: Callable[[], float], runs: int = 5) -> float:
    """The thesis' rule: `runs` runs, the fastest and the slowest dropped, the mean of the others.

    measure : does the work once and returns its seconds
    runs : >= 3
    """
    times = sorted(measure() for _ in range(runs))[1:-1]
    return sum(times) / len(times)
