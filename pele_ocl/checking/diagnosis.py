"""Diagnosis of faults in a kernel from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..units import COULOMB_KCAL_A
from .cases import Case
from .findings import CaseResult, Finding, merged
from .running import Outcome, Runner

# Largest error of a correct kernel, relative to the sum of absolute values of the terms.
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
LOST_DIGITS = 2e-2
EXACTLY = 3  # a mistake explains a result within this multiple of the tolerance
REPEATS = 2
FEWEST_PLACES = 2  # misplaced numbers that are not a coincidence
FEWEST_SIZES = 3  # wrong sizes, of which one may be an exception
COUNTED = 24  # values of a sum for which additions are counted
# Wrong factors of a potential, and their causes.
FACTORS = {
    COULOMB_KCAL_A: "the atoms' charges already include Coulomb's constant",
    1 / COULOMB_KCAL_A: "the atoms' charges include Coulomb's constant, which must not be divided out",
    0.1: "lengths are in Å, not in nm",
    10.0: "lengths are in Å, not in nm",
    4.184: "energies are in kcal, not in kJ",
    1 / 4.184: "energies are in kcal, not in kJ",
}
UNWRITTEN = "it is never written, or only with zeros, as an int does for fractions"
UNNAMED = ("wrong", "not-a-number")  # used only without a more specific explanation
FOLLOWS = (*UNNAMED, "not-written", "axes")  # omitted if there is a certain fault


def examined(
    runner: Runner, cases: Sequence[Case]
) -> Iterator[tuple[tuple[Finding, ...], tuple[CaseResult, ...]]]:  # fmt: skip
    """Run a kernel on all cases. Yields the findings and the results of cases so far, after each case."""
    certain, likely, results = list[Finding](), dict[str, list[Finding]](), list[CaseResult]()
    guard = cache(lambda: _guard(runner, cases))
    for case in cases:
        if _is_long(case) and (certain or likely):
            return  # only useful to detect lost digits, and may take minutes with a wrong kernel
        faults, explanations, error = _of_case(runner, case, guard)
        certain += faults
        likely |= {case.name: explanations} if explanations else {}
        results.append(CaseResult(case.name, not faults + explanations, error if np.isfinite(error) else None))
        yield _chosen(certain, likely), tuple(results)


def _chosen(certain: Sequence[Finding], likely: Mapping[str, Sequence[Finding]]) -> tuple[Finding, ...]:
    """Return the findings to report: certain faults, and a minimal set of explanations."""
    if any(each.kind == "out-of-bounds" for each in certain):
        certain = [each for each in certain if each.kind != "race"]
    chosen = [each for each in _fewest(likely) if not certain or each.kind not in FOLLOWS]
    return merged([*certain, *chosen])


def _fewest(likely: Mapping[str, Sequence[Finding]]) -> Iterator[Finding]:
    """Yield a small set of explanations that covers all cases, beginning with the one that covers most."""
    every = Counter(each for explanations in likely.values() for each in explanations)
    # An explanation of only one size is a coincidence if another size has none; a factor must fit several sizes.
    unnamed = any(all(each.kind in UNNAMED for each in explanations) for explanations in likely.values())
    chance = ("factor",) if not unnamed or len(likely) < FEWEST_SIZES else {each.kind for each in every} - {*UNNAMED}
    left = {
        name: [each for each in explanations if each.kind not in chance or every[each] > 1 or len(likely) == 1]
        for name, explanations in likely.items()
    }
    while left:
        counts = Counter((each.kind, each.sentence) for explanations in left.values() for each in explanations)
        kind, sentence = max(counts, key=lambda each: (each[0] not in UNNAMED, counts[each]))
        covered = [name for name, found in left.items() if Finding(kind, sentence) in found]
        if kind in UNNAMED:  # these sentences differ between cases; report only the first
            kind, sentence = [(each.kind, each.sentence) for each in next(iter(left.values()))][-1]
            covered = list(left)
        yield Finding(kind, sentence, None, tuple(covered))
        for name in covered:
            del left[name]


def _guard(runner: Runner, cases: Sequence[Case]) -> str:
    """Return advice on how to keep work-items from writing beyond the end of the output."""
    quantity, element = runner.quantity, runner.quantity.element
    if element == "group":
        return quantity.place
    if element != "point" or runner.compiled.group is not None or len(runner.launch.shape(cases[0])) == 1:
        return f"work-items beyond the last {element} must do nothing, by `if (i >= n) return;`"
    goes_beyond, k = _writes_beyond(runner, cases, None), runner.launch.points_per_item
    if k > 1 and goes_beyond:
        return f"each of a work-item's {k} points needs its own test, that its x is below nx"
    n_axes = len(runner.launch.shape(cases[0]))
    named = ["xyz"[axis] for axis in range(n_axes) if _writes_beyond(runner, cases, axis)]
    if not named or goes_beyond:
        return quantity.place
    ends = ", ".join(f"along {axis} from 0 to n{axis} - 1" for axis in named)
    axes = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
    return f"work-items beyond the last point along {axes} must do nothing; points go {ends}"


def _writes_beyond(runner: Runner, cases: Sequence[Case], axis: int | None) -> bool:
    """Return whether the kernel writes beyond the map if work-items exceed the points only along `axis`, or nowhere."""
    apart, width = copy(runner), 1 if axis is None else max(2, runner.launch.fitted(3)[axis])
    apart.launch = replace(runner.launch, group=tuple(width if k == axis else 1 for k in range(3)))
    tried = [case for case in cases if axis is None or case.size(f"n{'xyz'[axis]}") % width]
    return any(runner.quantity.output in apart.outcome(case).beyond for case in (tried if axis is None else tried[:1]))


def _of_case(
    runner: Runner, case: Case, guard: Callable[[], str]
) -> tuple[list[Finding], list[Finding], float]:  # fmt: skip
    """Return the certain faults in a case, likely explanations of wrong results, and the largest error."""
    outcomes = [runner.outcome(case) for _ in range(REPEATS)]
    first, tolerance = outcomes[0], TOLERANCE[runner.compiled.precision]
    faults = [
        Finding("out-of-bounds", f"it writes beyond the end of `{name}`: {guard()}", None, (case.name,), "write")
        for name in first.beyond
    ]
    faults += [
        Finding("out-of-bounds", f"it writes before `{name}`, whose indices start at 0", None, (case.name,), "write")
        for name in first.before
    ]
    faults += [Finding("writes-input", f"it changes its input `{name}`", None, (case.name,)) for name in first.changed]
    error = _errors(first, case)
    worst = float(np.max(error))
    if any(_differ(first, each, case, tolerance) for each in outcomes[1:]):
        differ = (
            "its results differ from run to run: a race, in which work-items write one element at the same time, or a "
            "value that was never set"
        )
        if runner.quantity.element == "group" or len(runner.launch.shape(case)) > 1:  # one writer per element
            differ += f"; {runner.quantity.place}"
        return [*faults, Finding("race", differ, None, (case.name,))], [], worst
    if worst <= tolerance:
        return faults, [], worst
    read = [
        Finding("out-of-bounds", f"it reads before the beginning or beyond the end of `{name}`", None, (case.name,))
        for name in _arrays(runner)
        if _is_read_beyond(runner, case, first, name)
    ]
    if read:
        return [*faults, *read], [], worst
    return faults, list(_explained(runner, case, first, error > tolerance)), worst


def _differ(first: Outcome, second: Outcome, case: Case, tolerance: float) -> bool:
    """Return whether the results of two runs differ by more than the tolerance."""
    equal = np.array_equal(first.values, second.values, equal_nan=True)
    return not equal and not np.nanmax(np.abs(first.values - second.values) / case.scale) <= tolerance


def _errors(outcome: Outcome, case: Case) -> Floats:
    errors: Floats = np.abs(outcome.values - case.exact) / case.scale
    return np.where(np.isfinite(errors), errors, np.inf)


def _explained(runner: Runner, case: Case, first: Outcome, wrong: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield all explanations that fit the wrong results, and one with their positions."""
    tolerance, values = EXACTLY * TOLERANCE[runner.compiled.precision] * case.scale, first.values
    with np.errstate(all="ignore"):
        for slip in case.slips():
            is_other = (np.abs(slip.values - case.exact) > tolerance) | ~np.isfinite(slip.values)
            close = (np.abs(values - slip.values) <= tolerance) | (~np.isfinite(values) & ~np.isfinite(slip.values))
            if is_other.any() and close.all():
                yield Finding(slip.kind, slip.sentence)
    is_map, k = runner.quantity.element == "point", runner.launch.points_per_item
    if is_map and not values[wrong].any():
        yield from _of_ends(case, wrong)
    if is_map and k > 1 and _is_alike_in_rows(values, wrong, case):
        yield Finding(
            "not-written",
            f"some points are never written, all others are correct: groups overlap, because work-items own {k} points "
            f"each. Either these are neighbours, from {k} * get_global_id(0) on, or get_local_size(0) apart, the first "
            f"at {k} * get_local_size(0) * get_group_id(0) + get_local_id(0)",
        )
    if is_map and k == 1:
        yield from _of_numbers(runner, case, values, wrong)
    if is_map and values[wrong].any() and _is_misplaced(values, case.exact, tolerance):
        owned = "; a work-item's points are as far apart in x as in the index" * (k > 1)
        yield Finding("axes", f"numbers are correct, but in the wrong places: {runner.quantity.place}{owned}")
    if case.added and not _is_long(case):
        yield from _of_sum(runner, case, first)
    errors, where = _errors(first, case), _named(np.flatnonzero(wrong), runner, case)
    if runner.compiled.precision == "float64" and errors.max() < TOLERANCE["float32"]:
        digits = "only seven digits are correct, as in float: a variable is float, or a constant ends in f, for double"
        yield Finding("precision", digits)
    if errors.max() < LOST_DIGITS and _is_long(case):
        yield Finding(
            "precision", "digits are lost in one long sum in float: sum groups of a few hundred terms, then these sums"
        )
    if not values.any():
        yield Finding("not-written", f"`{runner.quantity.output}` stays zero: {UNWRITTEN}")
    if _is_last_group(wrong, runner) and not values[wrong].any():
        yield Finding("partial-group", "the last work-group, which is not full, writes nothing, or only zeros")
    if _is_last_group(wrong, runner) and not wrong.all():
        yield Finding(
            "partial-group", f"the last {runner.quantity.element}s, of a work-group that is not full, are wrong"
        )
    factor = _factor(values, case)
    if factor is not None:
        known = [why for of, why in FACTORS.items() if abs(factor / of - 1) < 1e-3] if is_map else []
        if known or len(values) > 1:
            yield Finding("factor", ": ".join([f"all results are {factor:.4g} times what they should be", *known[:1]]))
    broken = np.flatnonzero(~np.isfinite(values))
    if len(broken):
        why = "a division by a distance of zero, or a root of less than zero"
        yield Finding("not-a-number", f"{_named(broken, runner, case)}: infinite, or not a number: {why}")
    elif not values[wrong].any():
        yield Finding("not-written", f"{where}: zero, never written or only with zeros")
    else:
        k = int(np.argmax(errors))
        worst = f"{_named([k], runner, case)} is {values[k]:.6g} in place of {case.exact[k]:.6g}"
        yield Finding("wrong", f"{where}: wrong; {worst}")


def _is_alike_in_rows(values: Floats, wrong: NDArray[np.bool_], case: Case) -> bool:
    """Return whether wrong points are zero, the same in all rows, and do not include the first of a row."""
    rows = wrong.reshape(-1, case.size("nx"))
    return not values[wrong].any() and not rows[:, 0].any() and bool((rows == rows[0]).all())


def _of_ends(case: Case, wrong: NDArray[np.bool_]) -> Iterator[Finding]:
    """Explain a map in which only the first or last points along an axis are zero."""
    shape = tuple(case.size(f"n{name}") for name in "zyx")
    missing, places = wrong.reshape(shape), np.indices(shape)
    for axis, name in enumerate("xyz"):
        for word, number in (("last", shape[2 - axis] - 1), ("first", 0)):
            if np.array_equal(missing, places[2 - axis] == number):
                yield Finding(
                    "not-written",
                    f"the {word} points along {name} are never written: points go from 0 to n{name} - 1",
                )


def _of_numbers(runner: Runner, case: Case, values: Floats, wrong: NDArray[np.bool_]) -> Iterator[Finding]:
    """Explain zero points of an otherwise correct map by wrong indices of work-items."""
    if values[wrong].any() or len(runner.launch.shape(case)) < 2:
        return
    shape = tuple(case.size(f"n{name}") for name in "zyx")
    missing, places = wrong.reshape(shape), np.indices(shape)
    for axis, name in enumerate("xyz"):
        along, group = places[2 - axis], runner.launch.fitted(3)[axis]
        for first, number in ((group, "get_local_id"), (-(-shape[2 - axis] // group), "get_group_id")):
            if 0 < first < shape[2 - axis] and np.array_equal(missing, along >= first):
                what = "counts within a group" if number == "get_local_id" else "is the number of a group"
                yield Finding(
                    "not-written",
                    f"points along {name} are left out: {number}({axis}) {what}; get_global_id({axis}) numbers all",
                )
    for first, second in ((0, 1), (0, 2), (1, 2)):
        if np.array_equal(missing, places[2 - first] != places[2 - second]):
            names = f"{'xyz'[first]} and {'xyz'[second]}"
            yield Finding(
                "not-written",
                f"only points whose {names} are equal are written: get_global_id({first}) and get_global_id({second}) "
                "number them",
            )


def _is_misplaced(values: Floats, exact: Floats, tolerance: Floats) -> bool:
    """Return whether all nonzero numbers are exact values of any points."""
    written = values[values != 0]
    if len(written) < FEWEST_PLACES or not np.isfinite(written).all():
        return False
    ordered = np.sort(exact)
    above = np.clip(np.searchsorted(ordered, written), 1, len(ordered) - 1)
    off = np.minimum(np.abs(ordered[above] - written), np.abs(ordered[above - 1] - written))
    return bool((off <= tolerance.max()).all())


def _of_sum(runner: Runner, case: Case, first: Outcome) -> Iterator[Finding]:
    """Explain a wrong sum by the sums of groups, and by how often each value is added."""
    if len(first.elements) > 1 and np.count_nonzero(first.elements) == 1:
        yield Finding("not-written", f"only one work-group's sum is written: {runner.quantity.place}")
    counts = _counts(runner, case)
    if counts[0] not in (0, 1) and (np.abs(counts / counts[0] - 1) < 1e-3).all():
        times = "minus " * int(counts[0] < 0) + f"{abs(counts[0]):.4g} times"
        yield Finding("factor", f"the sum is {times} what it should be: values must be added without a factor")
    several = "values are counted several times: is a step of the loop the number of all work-items of all groups, and"
    left_out = "values are left out: does each work-item's loop continue to the last value, and"
    if (counts > 1).any():
        yield Finding("formula", f"{several} does each step of a tree add each part once?")
    elif (counts == 0).any():
        yield Finding("formula", f"{left_out} does a tree add all parts?")


def _counts(runner: Runner, case: Case) -> Floats:
    """Count how often some values are added, by setting each in turn to one and all others to zero."""
    n, counts = case.size("n"), []
    spread = np.linspace(0, n - 1, COUNTED).astype(int)
    for k in np.unique([*spread, *range(min(n, runner.launch.items_per_group))]):  # including all items of a group
        one = np.zeros(n)
        one[k] = 1
        counts.append(runner.outcome(replace(case, values={**case.values, "values": one})).values[0])
    return np.array(counts)


def _arrays(runner: Runner) -> list[str]:
    return [of.name for of in runner.compiled.parameters if of.is_array]


def _is_read_beyond(runner: Runner, case: Case, first: Outcome, name: str) -> bool:
    """Return whether results depend on values outside an array."""
    again, once_more = (runner.outcome(case, filled_again=name).values for _ in range(2))
    repeats = np.array_equal(again, once_more, equal_nan=True) and np.array_equal(
        first.values, runner.outcome(case).values, equal_nan=True
    )
    return repeats and not np.allclose(again, first.values, rtol=1e-4, atol=0, equal_nan=True)


def _is_long(case: Case) -> bool:
    """Return whether the result is a sum of very many terms."""
    return case.added and case.values["n"] > 10**4


def _is_last_group(wrong: NDArray[np.bool_], runner: Runner) -> bool:
    """Return whether exactly the elements of the last, incomplete group are wrong."""
    n, group = len(wrong), runner.launch.size
    whole = n // group * group
    return n != whole and bool(wrong[whole:].all()) and not wrong[:whole].any()


def _factor(values: Floats, case: Case) -> float | None:
    """Return the constant factor between all results and exact values, or None."""
    counted = np.abs(case.exact) > 1e-3 * case.scale
    if not counted.any():
        return None
    ratios = values[counted] / case.exact[counted]
    middle = float(np.median(ratios))
    return middle if np.abs(ratios - middle).max() <= 1e-3 * abs(middle) and abs(middle - 1) > 1e-3 else None


def _named(indices: Sequence[int] | NDArray[Any], runner: Runner, case: Case) -> str:
    """Describe elements of the output, such as `atoms 64 to 66 of 67`, `point (3, 0, 1)` or `atom 5, y`."""
    n, element = len(case.exact), runner.quantity.element
    if case.added:
        return "the sum"

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
