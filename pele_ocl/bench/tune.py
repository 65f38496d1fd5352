"""Measurement of all variants and settings of every quantity on a device, for molecules of increasing size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import PeleError
from ..common.variant import Variant
from ..energy import VARIANTS as ENERGY
from ..energy import Energy
from ..grid import Grid
from ..nonbond import VARIANTS as NONBOND
from ..nonbond import Nonbond
from ..opencl.device import Device
from ..pairs import PairList, pairs_within
from ..plan.tuning import RULES, SIZES, Choice, choices_for, remembered, trying
from ..potmap import VARIANTS as POTMAP
from ..potmap import potmap
from ..solvent import VARIANTS as SOLVENT
from ..solvent import Solvent
from .timing import profiled

CUTOFF = 12.0  # A, for pair lists
CASE_SECONDS = 15.0  # molecules for which all choices would take longer are skipped
EVALUATIONS = 8  # approximate number per choice
ROUNDS_SECONDS = 0.5  # for alternating measurements of the choices
ROUNDS, DUEL_ROUNDS = (3, 25), (5, 25)  # minimum and maximum
STEPS = 4  # energies timed in sequence
HOPELESS, HOPELESS_AT_ONCE = 1.5, 3.0  # choices slower than the best by these factors are not measured again
NOISE, WINS = 0.05, 0.75  # a choice must be faster than the default by this fraction, in this fraction of rounds
AGREEMENT = 1e-4  # largest relative difference of a correct result from that of the default

# Does the work once; returns the kernel time, s, and a number to compare results.
Once = Callable[[], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Case:
    """A molecule with the data required by the quantities."""

    name: str
    atoms: Atoms

    @cached_property
    def pairs(self) -> PairList:
        return pairs_within(self.atoms, CUTOFF)

    @cached_property
    def grid(self) -> Grid:
        return Grid.around(self.atoms)

    @cached_property
    def born_radii(self) -> Floats:
        """Placeholder for Born radii, whose values do not affect the time of pairs."""
        assert self.atoms.gb_radii is not None
        return self.atoms.gb_radii * 2

    def size(self, quantity: str) -> int:
        """Return the size in the unit of tuning.SIZES."""
        if quantity == "nonbond":
            return len(self.pairs)
        return len(self.atoms) * (len(self.grid) if quantity == "potmap" else 1)


def _solvent(case: Case, device: Device, precision: str) -> Once:
    plan = Solvent(case.atoms, precision=precision, device=device)
    evaluate = profiled(plan.evaluate)

    def once() -> tuple[float, float]:
        result = evaluate()
        return result.seconds["kernel"], result.total

    return once


def _nonbond(case: Case, device: Device, precision: str) -> Once:
    plan = Nonbond(case.atoms, case.pairs, precision=precision, device=device)
    evaluate = profiled(plan.evaluate)

    def once() -> tuple[float, float]:
        result = evaluate(born_radii=case.born_radii)
        assert result.gradient is not None
        return result.seconds["kernel"], float(np.abs(result.gradient).sum())

    return once


def _energy(case: Case, device: Device, precision: str) -> Once:
    plan = Energy(case.atoms, precision=precision, device=device, born="pairs")

    def once() -> tuple[float, float]:
        result = plan.evaluate()
        assert result.gradient is not None
        start = time.perf_counter()
        plan.repeat(STEPS)
        return (time.perf_counter() - start) / STEPS, float(np.abs(result.gradient).sum())

    return once


def _potmap(case: Case, device: Device, precision: str) -> Once:
    def once() -> tuple[float, float]:
        result = potmap(case.atoms, case.grid, precision=precision, device=device)
        return result.seconds["kernel"], float(np.abs(result.map.values).sum(dtype=np.float64))

    return once


VARIANTS: dict[str, Mapping[str, Variant[Any]]] = {
    "solvent": SOLVENT, "nonbond": NONBOND, "energy": ENERGY, "potmap": POTMAP,
}  # fmt: skip

WORK: dict[str, Callable[[Case, Device, str], Once]] = {
    "solvent": _solvent, "nonbond": _nonbond, "energy": _energy, "potmap": _potmap,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Times of all choices of a quantity for one molecule.

    auto : current choice of `auto`; best : best choice, which is RULES unless another is significantly faster
    seconds : median kernel time of each choice; the shortest time for slow choices
    wrong : choices excluded because of wrong results, with their errors relative to RULES
    """

    quantity: str
    precision: str
    system: str
    size: int
    auto: Choice
    best: Choice
    seconds: dict[Choice, float]
    wrong: dict[Choice, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Time of `auto` relative to the best choice."""
        return self.seconds[self.auto] / self.seconds[self.best]


def measure(quantity: str, precision: str, cases: Sequence[Case], device: Device, whole: bool = False) -> Iterator[Row]:
    """Yield a row for each molecule, smallest first.

    whole : also measure molecules that take longer than CASE_SECONDS
    """
    previous = None
    for case in cases:
        size = case.size(quantity)
        if previous is not None and not whole and _expected_seconds(previous, size, device) > CASE_SECONDS:
            return
        previous = _row(quantity, precision, case, device)
        yield previous


def _expected_seconds(smaller: Row, size: int, device: Device) -> float:
    """Estimate the time of all choices for a larger molecule from those for a smaller one."""
    growth = (size / smaller.size) ** (2 if SIZES[smaller.quantity] == "atoms" else 1)
    offered = [RULES, *choices_for(VARIANTS[smaller.quantity], device, smaller.precision, size)]
    fastest = min(smaller.seconds.values())
    counts = {choice: EVALUATIONS if s <= HOPELESS * fastest else 2 for choice, s in smaller.seconds.items()}
    return growth * sum(counts[choice] * s for choice, s in smaller.seconds.items() if choice in offered)


def _row(quantity: str, precision: str, case: Case, device: Device) -> Row:
    size = case.size(quantity)
    choices = [RULES, *choices_for(VARIANTS[quantity], device, precision, size)]
    ready, wrong = _prepared(quantity, precision, case, device, choices)
    auto = remembered(quantity, VARIANTS[quantity], device, precision, size)
    auto = auto if auto in ready else RULES
    once_each = {choice: seconds for choice, (_, seconds) in ready.items()}
    hopeless = HOPELESS * min(once_each.values())
    promising = {
        choice: once for choice, (once, seconds) in ready.items() if seconds <= hopeless or choice in (RULES, auto)
    }  # fmt: skip
    together = _beside_each_other(promising)
    winner = min(together, key=lambda choice: median(together[choice]))
    # The fastest of many choices may be fastest by chance, so it is compared with the default again.
    duel = _beside_each_other({choice: promising[choice] for choice in {RULES, auto, winner}}, DUEL_ROUNDS)
    faster = np.array(duel[winner]) < (1 - NOISE) * np.array(duel[RULES])
    best = winner if faster.mean() >= WINS else RULES
    medians = {choice: median(times) for choice, times in {**together, **duel}.items()}
    return Row(quantity, precision, case.name, size, auto, best, once_each | medians, wrong)


def _prepared(
    quantity: str, precision: str, case: Case, device: Device, choices: Sequence[Choice]
) -> tuple[dict[Choice, tuple[Once, float]], dict[Choice, float]]:
    """Return the choices whose results agree with the first one, with their work and time, and errors of the others.

    Choices not supported by the device are omitted.
    """
    ready: dict[Choice, tuple[Once, float]] = {}
    wrong: dict[Choice, float] = {}
    expected = None
    for choice in choices:
        try:
            with trying(quantity, choice):
                once = _within(quantity, choice, WORK[quantity](case, device, precision))
            once()  # builds the kernels
            seconds, value = once()
            if not ready or seconds < HOPELESS_AT_ONCE * min(fastest for _, fastest in ready.values()):
                seconds = min(seconds, once()[0])
        except PeleError:  # too large for the device, a compiler error, or results that are not finite
            if expected is None:
                raise
            continue
        if expected is None:
            expected = value
        if abs(value - expected) <= AGREEMENT * abs(expected):
            ready[choice] = once, seconds
        else:
            wrong[choice] = abs(value - expected) / (abs(expected) or 1.0)
    return ready, wrong


def _within(quantity: str, choice: Choice, once: Once) -> Once:
    def chosen() -> tuple[float, float]:
        with trying(quantity, choice):
            return once()

    return chosen


def _beside_each_other(work: dict[Choice, Once], bounds: tuple[int, int] = ROUNDS) -> dict[Choice, list[float]]:
    """Return the times of each choice, s, measured in turn, so that disturbances affect all of them."""
    start = time.perf_counter()
    times = {choice: [once()[0]] for choice, once in work.items()}
    rounds = int(np.clip(ROUNDS_SECONDS / (time.perf_counter() - start), *bounds))
    for _ in range(rounds - 1):
        for choice, once in work.items():
            times[choice].append(once()[0])
    return times
