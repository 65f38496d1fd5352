"""Times of kernels and of whole calls, each the mean of the middle of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from typing import Protocol, TypeVar

import numpy as np

from ..atoms import Atoms, Floats

REPEAT_SECONDS = 0.05  # what is shorter is repeated for as long
LONG_SECONDS = 5.0  # what is longer is timed once
SHAKE, SEED = 0.01, 1  # A, by which the conformations of calls differ


class Timed(Protocol):
    """A result that knows the seconds it took."""

    @property
    def seconds(self) -> Mapping[str, float]: ...


R = TypeVar("R", bound=Timed)


def kernel_seconds(evaluate: Callable[..., Timed], **arguments: object) -> float:
    """Return the kernels' seconds of one evaluation of a plan."""
    return profiled(evaluate)(**arguments).seconds["kernel"]


def profiled(evaluate: Callable[..., R]) -> Callable[..., R]:
    """An evaluation that has the kernels' time taken."""
    return partial(evaluate, profile=True)


def call_seconds(evaluate: Callable[[Floats], object], atoms: Atoms, runs: int = 5) -> float:
    """Seconds of a call that gets positions and gives arrays, wall time.

    evaluate : gets (n, 3) A; two conformations that differ by 0.01 A take turns, so that none is known from before
    """
    shaken = atoms.positions + np.random.default_rng(SEED).normal(0, SHAKE, atoms.positions.shape)
    turns = cycle((atoms.positions, shaken))
    return wall_seconds(lambda: evaluate(next(turns)), runs)


def mean_of_middle(measure: Callable[[], float], runs: int = 5) -> float:
    """Measure by the thesis' rule: `runs` runs, the fastest and the slowest dropped, the mean of the others.

    measure : does the work once and returns its seconds
    runs : >= 3
    """
    times = sorted(measure() for _ in range(runs))[1:-1]
    return sum(times) / len(times)


def wall_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Seconds of one call wall time, the mean of the middle of `runs` measurements."""

    def several(count: int) -> None:
        for _ in range(count):
            work()

    return wall_seconds_of_many(several, runs)


def wall_seconds_of_many(work: Callable[[int], object], runs: int = 5) -> float:
    """Measure as wall_seconds; work : does its work as often as it is told"""

    def each(count: int) -> float:
        start = time.perf_counter()
        work(count)
        return (time.perf_counter() - start) / count

    once = each(1)
    if once > LONG_SECONDS:
        return once
    count = max(1, round(REPEAT_SECONDS / once))
    return mean_of_middle(lambda: each(count), runs)
