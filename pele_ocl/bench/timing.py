"""Timing of kernels and calls, by trimmed means over several runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from typing import Protocol, TypeVar

import numpy as np

from ..atoms import Atoms, Floats

REPEAT_SECONDS = 0.05  # shorter calls are repeated for this time
LONG_SECONDS = 5.0  # longer calls are timed only once
SHAKE, SEED = 0.01, 1  # A, difference between the conformations of calls


class Timed(Protocol):
    """Result with its times."""

    @property
    def seconds(self) -> Mapping[str, float]: ...


R = TypeVar("R", bound=Timed)


def kernel_seconds(evaluate: Callable[..., Timed], **arguments: object) -> float:
    """Return the kernel time of one evaluation of a plan, s."""
    return profiled(evaluate)(**arguments).seconds["kernel"]


def profiled(evaluate: Callable[..., R]) -> Callable[..., R]:
    """Return the evaluation function with profiling of kernels enabled."""
    return partial(evaluate, profile=True)


def call_seconds(evaluate: Callable[[Floats], object], atoms: Atoms, runs: int = 5) -> float:
    """Return the wall time of a call that takes positions and returns arrays, s.

    evaluate : function of positions (n, 3) A; called in turn with two conformations, to exclude effects of caching
    """
    shaken = atoms.positions + np.random.default_rng(SEED).normal(0, SHAKE, atoms.positions.shape)
    turns = cycle((atoms.positions, shaken))
    return wall_seconds(lambda: evaluate(next(turns)), runs)


def mean_of_middle(measure: Callable[[], float], runs: int = 5) -> float:
    """Return the mean over `runs` runs without the fastest and the slowest, as in the thesis.

    measure : function that does the work once and returns the time, s
    runs : >= 3
    """
    times = sorted(measure() for _ in range(runs))[1:-1]
    return sum(times) / len(times)


def wall_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the wall time of one call, s, the trimmed mean of `runs` measurements."""

    def several(count: int) -> None:
        for _ in range(count):
            work()

    return wall_seconds_of_many(several, runs)


def wall_seconds_of_many(work: Callable[[int], object], runs: int = 5) -> float:
    """Return the wall time of one call, as in wall_seconds. work : function that repeats it a given number of times"""

    def each(count: int) -> float:
        start = time.perf_counter()
        work(count)
        return (time.perf_counter() - start) / count

    once = each(1)
    if once > LONG_SECONDS:
        return once
    count = max(1, round(REPEAT_SECONDS / once))
    return mean_of_middle(lambda: each(count), runs)
