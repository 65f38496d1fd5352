"""How times are taken and told."""

from __future__ import annotations

import time
from collections.abc import Callable

REPEAT_SECONDS = 0.05  # what is shorter is repeated for as long
LONG_SECONDS = 5.0  # what is longer is timed once


def mean_of_middle(measure: Callable[[], float], runs: int = 5) -> float:
    """The thesis' rule: `runs` runs, the fastest and the slowest dropped, the mean of the others.

    measure : does the work once and returns its seconds
    runs : >= 3
    """
    times = sorted(measure() for _ in range(runs))[1:-1]
    return sum(times) / len(times)


def wall_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Seconds of one call by the clock on the wall, the mean of the middle of `runs` measurements."""

    def several(count: int) -> None:
        for _ in range(count):
            work()

    return wall_seconds_of_many(several, runs)


def wall_seconds_of_many(work: Callable[[int], object], runs: int = 5) -> float:
    """As wall_seconds; work : does its work as often as it is told"""

    def each(count: int) -> float:
        start = time.perf_counter()
        work(count)
        return (time.perf_counter() - start) / count

    once = each(1)
    if once > LONG_SECONDS:
        return once
    count = max(1, round(REPEAT_SECONDS / once))
    return mean_of_middle(lambda: each(count), runs)
