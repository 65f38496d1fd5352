"""Faults of a kernel, found from what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .cases import Case
from .findings import CaseResult, Finding, merged
from .running import Outcome, Runner

# Largest error of a right kernel, relative to the sum of its terms' sizes; what float32 itself gives, at most.
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
LOST_DIGITS = 2e-2
EXACTLY = 20  # times the tolerance, within which a slip explains a result
REPEATS = 3


def examined(runner: Runner, cases: Sequence[Case]) -> tuple[tuple[Finding, ...], tuple[CaseResult, ...]]:
    """Run a kernel on all cases: what is wrong, and how each went."""
    findings, results = list[Finding](), list[CaseResult]()
    for case in cases:
        found, error = _of_case(runner, case)
        findings += found
        results.append(CaseResult(case.name, not found, error if error is None or np.isfinite(error) else None))
    return _sifted(merged(findings)), tuple(results)


def _of_case(runner: Runner, case: Case) -> tuple[list[Finding], float | None]:
    """Find what is wrong in one case, and its error."""
    outcomes = [runner.outcome(case) for _ in range(REPEATS)]
    first, tolerance = outcomes[0], TOLERANCE[runner.compiled.precision]
    findings = [
        Finding("out-of-bounds", f"it writes beyond the end of `{name}`: {_guard(runner)}", None, (case.name,))
        for name in first.beyond
    ]
    findings += [
        Finding("writes-input", f"it changes its input `{name}`", None, (case.name,)) for name in first.changed
    ]
    error = _errors(first, case)
    is_wrong = bool((~(error <= tolerance)).any())
    if not all(np.array_equal(first.values, each.values, equal_nan=True) for each in outcomes[1:]):
        spread = max(float(np.nanmax(np.abs(each.values - first.values) / case.scale)) for each in outcomes[1:])
        if not spread <= tolerance:
            differ = (
                "it gives other numbers each time it runs: a race, in which work-items write one element at a time, "
                "or a value that was never set"
            )
            return [*findings, Finding("race", differ, None, (case.name,))], float(np.max(error))
    if is_wrong:
        findings += _explained(runner, case, first, error > tolerance)
    return findings, float(np.max(error))


def _errors(outcome: Outcome, case: Case) -> Floats:
    errors: Floats = np.abs(outcome.values - case.exact) / case.scale
    return np.where(np.isfinite(errors), errors, np.inf)


def _guard(runner: Runner) -> str:
    return f"work-items beyond the last {runner.quantity.element} must do nothing, by `if (i >= n) return;`"


def _explained(runner: Runner, case: Case, first: Outcome, wrong: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield the likeliest explanations of wrong results, or one that says where they are."""
    read = [name for name in _arrays(runner) if _is_read_beyond(runner, case, first, name)]
    for name in read:
        yield Finding("out-of-bounds", f"it reads beyond the end of `{name}`", None, (case.name,))
    if read:
        return
    tolerance = TOLERANCE[runner.compiled.precision]
    for slip in case.slips():
        is_other = np.abs(slip.values - case.exact) > EXACTLY * tolerance * case.scale
        close = np.abs(first.values - slip.values) <= EXACTLY * tolerance * case.scale
        if is_other.any() and close.all():
            yield Finding(slip.kind, slip.sentence, None, (case.name,))
            return
    where = _named(np.flatnonzero(wrong), runner, case)
    if not np.isfinite(first.values).all():
        broken = ~np.isfinite(first.values)
        of_all = "all results are" if broken.all() else f"{_named(np.flatnonzero(broken), runner, case)}:"
        why = "a division by a distance of zero, that of an atom to itself, or a root of less than zero"
        kind = "own-pair" if broken.all() and _meets_itself(runner) else "not-a-number"
        yield Finding(kind, f"{of_all} not a number, or infinite: {why}", None, (case.name,))
    elif runner.compiled.precision == "float64" and _errors(first, case).max() < TOLERANCE["float32"]:
        digits = "seven digits are right, as float has them: a variable is float, or a constant ends in f, for double"
        yield Finding("precision", digits, None, (case.name,))
    elif _errors(first, case).max() < LOST_DIGITS and len(first.values) < 10**6 and _is_long(case):
        lost = "digits are lost in one long sum in float: sum runs of some hundred terms, and then these"
        yield Finding("precision", lost, None, (case.name,))
    elif not first.values.any():
        yield Finding("not-written", f"`{runner.quantity.output}` stays zero: it is never written", None, (case.name,))
    elif not first.values[wrong].any() and _is_last_group(wrong, runner):
        rest = "the last work-group, which is not full, writes nothing: count groups by rounding up"
        yield Finding("partial-group", rest, None, (case.name,))
    elif not first.values[wrong].any():
        yield Finding("not-written", f"{where}: never written", None, (case.name,))
    elif (factor := _factor(first.values, case)) is not None:
        yield Finding("factor", f"all results are {factor:.6g} times what they should be", None, (case.name,))
    elif _is_last_group(wrong, runner) and not wrong.all():
        yield Finding("partial-group", f"{where}: wrong, in the last work-group, which is not full", None, (case.name,))
    else:
        k = int(np.argmax(_errors(first, case)))
        worst = f"{first.values[k]:.6g} in place of {case.exact[k]:.6g}"
        yield Finding("wrong", f"{where}: wrong; {_named([k], runner, case)} is {worst}", None, (case.name,))


def _arrays(runner: Runner) -> list[str]:
    return [of.name for of in runner.compiled.parameters if of.is_array]


def _is_read_beyond(runner: Runner, case: Case, first: Outcome, name: str) -> bool:
    """Tell if results depend on what is beyond the end of an array."""
    again = runner.outcome(case, filled_again=name).values
    return not np.allclose(again, first.values, rtol=1e-4, atol=0, equal_nan=True)


def _meets_itself(runner: Runner) -> bool:
    """Tell if the quantity sums over other atoms, so that an atom could meet itself."""
    return runner.quantity.element == "atom"


def _is_long(case: Case) -> bool:
    """Tell if an element is a sum of very many terms."""
    return case.added and case.values["n"] > 10**4


def _is_last_group(wrong: NDArray[np.bool_], runner: Runner) -> bool:
    """Tell if what is wrong is what the last group has, which is not full."""
    n, group = len(wrong), runner.launch.size
    return n % group != 0 and bool(wrong[n // group * group :].all()) and not wrong[: n // group * group].any()


def _factor(values: Floats, case: Case) -> float | None:
    """Find the constant factor of all results, if there is one."""
    counted = np.abs(case.exact) > 1e-3 * case.scale
    if counted.sum() < 2:
        return None
    ratios = values[counted] / case.exact[counted]
    middle = float(np.median(ratios))
    return middle if np.abs(ratios - middle).max() <= 1e-3 * abs(middle) and abs(middle - 1) > 1e-3 else None


def _named(indices: Sequence[int] | NDArray[Any], runner: Runner, case: Case) -> str:
    """Name elements of the output: `atoms 64 to 66 of 67`, `point (3, 0, 1)`, `atom 5, y`."""
    n, element = len(case.exact), runner.quantity.element

    def one(k: int) -> str:
        if element == "point":
            nx, ny = case.size("nx"), case.size("ny")
            return f"({k % nx}, {k // nx % ny}, {k // (nx * ny)})"
        return f"{k // 3} along {'xyz'[k % 3]}" if element == "component" else str(k)

    word = "atom" if element == "component" else element
    if len(indices) == 1:
        return f"{word} {one(int(indices[0]))}"
    if len(indices) == n:
        return f"all {n:,} {element}s"
    listed = ", ".join(one(int(k)) for k in indices[:4])
    more = f" and {len(indices) - 4:,} more" if len(indices) > 4 else ""
    return f"{word}s {listed}{more}, of {n:,} {element}s"


CAUSES = ("out-of-bounds", "race", "own-pair")  # from which other faults follow


def _sifted(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Leave out faults without a name if faults with one explain them."""
    named = [each for each in findings if each.kind not in ("wrong", "not-a-number", "partial-group")]
    return tuple(named) if any(each.kind in CAUSES or len(each.cases) > 1 for each in named) else findings
