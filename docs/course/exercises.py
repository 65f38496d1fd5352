"""Exercises of the course: the inputs of your kernels, and the expected outputs computed with NumPy.

Kernels that compute a complete quantity of pele-ocl are checked by `pele-ocl check`. Three are one of several steps,
or a function in a given loop; these are checked here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from charts import Measured
from numpy.typing import NDArray

from pele_ocl import InputError
from pele_ocl.checking.check import limit_computing
from pele_ocl.checking.compiling import plain_source, plain_words
from pele_ocl.checking.simulator import INSTALL, findings_of, simulator
from pele_ocl.reference.solvent import hct_term

CRASHED = "it crashed; which index is outside its array?"
GUARDS = 64  # numbers after the output that no kernel may touch
BLANK = "____"
INTEGERS = re.compile(r"(?<![\w.])\d+\s*/\s*\d+(?![\w.])")  # a quotient that C rounds to an integer
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(\s*\w+\s*(\([^()]*\))?\s*\)\)")
DECLARED = re.compile(r"\b(?:(?:__)?kernel\s+void|float8)\s+(\w+)\s*\(")
DEFINED = re.compile(r"\bfloat8\s+(\w+)\s*\(")
TURNED = {  # axes z, y, x of a map, as they are found
    (2, 1, 0): "x and z are swapped", (0, 2, 1): "x and y are swapped", (1, 0, 2): "y and z are swapped",
    (1, 2, 0): "x, y and z are permuted", (2, 0, 1): "x, y and z are permuted",
}  # fmt: skip
KIND = re.compile(r"an array|(?:int|float|double)\d*")
QUALIFIER = re.compile(r"\b(?:const|volatile|restrict|(?:__)?private)\b")
TINY, HUGE = 1e-30, 1e6  # sizes of gradients that only another number's bits have


@dataclass(frozen=True, eq=False)
class Case:
    """One launch of an exercise.

    about : description; size, group : work-items in total and in a group
    inputs : the kernel's arguments before its output; before : the initial content of the output
    exact : the expected content afterwards, float64; allowed : largest error of a correct kernel, for all or for each
    element : describes one number of the output; explain : suggests what may be wrong, or ""
    before_source, after_source : what is compiled with it, where it is a function and not a kernel
    rewrite : changes the solution before it is compiled; kernel : which one runs, where the source has several
    """

    about: str
    size: tuple[int, ...]
    group: tuple[int, ...] | None
    inputs: tuple[Any, ...]
    before: NDArray[Any]
    exact: NDArray[np.float64]
    allowed: float | NDArray[np.float64]
    element: Callable[[int], str] = "number {}".format
    explain: Callable[[NDArray[np.float32], NDArray[np.bool_]], str] = lambda found, wrong: ""
    before_source: str = ""
    after_source: str = ""
    rewrite: Callable[[str], str] | None = None
    kernel: str = ""

    def whole(self, source: str) -> str:
        """All source that is compiled for a solution."""
        own = self.rewrite(source) if self.rewrite else source
        return "\n".join(filter(None, [self.before_source, own, self.after_source]))


@dataclass
class Verdict:
    """Result of a check.

    findings : a sentence each; seconds, solution_seconds : of the exercise's kernel and of the solution, if correct
    slowest : seconds of the slowest of five runs of the kernel, if measured here
    is_checked : False if the check itself failed, for reasons unrelated to the kernel
    """

    exercise: str
    is_right: bool = False
    findings: list[str] = field(default_factory=list)
    seconds: float | None = None
    solution_seconds: float | None = None
    slowest: float | None = None
    is_checked: bool = True


def check(name: str, source: str, *, is_simulated: bool = True, most_seconds: float = 0) -> bool:
    """Check as `judge` does, and return True if nothing is wrong."""
    return judge(name, source, is_simulated=is_simulated, most_seconds=most_seconds).is_right


def judge(
    name: str, source: str, *, is_simulated: bool = True, most_seconds: float = 0, say: Callable[[str], None] = print
) -> Verdict:
    """Run a kernel on the cases of an exercise, and describe its errors.

    is_simulated : whether it is also run in a simulator, if there is one
    most_seconds : CPU time limit of this process for a case; 0 for no limit
    """
    verdict = Verdict(name, findings=[*blanks(source), *another(name, source)])
    if verdict.findings:
        say("\n".join(f"{name}: {each}" for each in verdict.findings))
        return verdict
    for case in CASES[name]():
        limit_computing(most_seconds)
        fault = _fault(case, source)
        say(f"{name}, {case.about}: {fault or 'right'}")
        if fault:
            verdict.findings.append(fault)
            break
    limit_computing(0)
    if is_simulated and "compiler" not in fault:
        verdict.findings += seen(name, source, say)
    if verdict.findings:
        return verdict
    from course import kernel

    case = TIMED[name]()
    verdict.is_right = True
    seconds = seconds_of(case, source)
    verdict.seconds, verdict.slowest = float(seconds), seconds.slowest
    with contextlib.suppress(InputError):  # a students' copy has no solutions
        verdict.solution_seconds = float(seconds_of(case, kernel(name)))
    solution = "" if verdict.solution_seconds is None else f", the solution {1e3 * verdict.solution_seconds:.3f} ms"
    slowest = f"{1e3 * verdict.seconds:.3f} ms (the fastest of five runs; the slowest {1e3 * verdict.slowest:.3f} ms)"
    say(f"{name}, {case.about}: yours takes {slowest}{solution}")
    return verdict


def with_lines(found: Iterable[tuple[int | None, str]]) -> list[str]:
    """Add the line numbers to each sentence, without duplicates."""
    lines: dict[str, list[int]] = {}
    for line, sentence in found:
        lines.setdefault(sentence, []).extend([] if line is None else [line])
    return [f"{_listed(sorted(set(numbers)))}{sentence}" for sentence, numbers in lines.items()]


def _listed(numbers: list[int]) -> str:
    """Return "line 7: ", "lines 7, 9 and 12: ", or ""."""
    if len(numbers) < 2:
        return "".join(f"line {number}: " for number in numbers)
    return f"lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}: "


def blanks(source: str) -> list[str]:
    """List the lines with unfilled blanks, ignoring comments."""
    lines = [number for number, line in enumerate(plain_source(source).splitlines(), 1) if BLANK in line]
    return with_lines((number, f"the blank `{BLANK}` has not been filled") for number in lines)


def another(name: str, source: str) -> list[str]:
    """Report a source of another exercise, or without a function with the exercise's name and arguments."""
    code, wanted = ATTRIBUTE.sub(" ", plain_source(source)), function_of(name)
    if re.search(rf"\b{wanted}\s*\(", code):
        given, own = (_arguments(text, wanted) for text in (plain_source(_blank(name)), code))
        if name in QUANTITIES or name == "born8" or given == own or not all(map(KIND.fullmatch, own)):
            return []  # they are matched by name, or the compiler says what is wrong
        return [f"its arguments are {', '.join(own)}; the check gives {', '.join(given)}, in this order"]
    there = DECLARED.findall(code)
    if name in QUANTITIES and not set(there) & set(map(function_of, EXERCISES)):
        return []
    has = f"it has {', '.join(f'`{each}`' for each in there)}" if there else "it has none"
    return [f"the file has no {'function' if name == 'born8' else 'kernel'} `{wanted}`; {has}"]


def function_of(exercise: str) -> str:
    """Return the name of the kernel or function of an exercise: `atomic` is a keyword of OpenCL C."""
    return "atomic_pairs" if exercise == "atomic" else exercise


def _blank(name: str) -> str:
    return (Path(__file__).parent / "blanks" / f"{name}.cl").read_text(encoding="utf-8")


def _arguments(code: str, name: str) -> list[str]:
    """List the arguments of a function: an array, or the type of a number; "" if its declaration is not found."""
    found = re.search(rf"\b{name}\s*\(([^()]*)\)\s*\{{", code)
    if found is None:
        return [""]
    parameters = found[1].split(",")
    kinds = [
        "an array" if "*" in each or "[" in each else (QUALIFIER.sub(" ", each).split() or [""])[0]
        for each in parameters
    ]
    return [{"uint": "int", "unsigned": "int"}.get(kind, kind) for kind in kinds]


def seen(name: str, source: str, say: Callable[[str], None]) -> list[str]:
    """Run the simulator to find errors that the device may hide; print and return them."""
    from course import report_on

    if simulator() is None:
        say(
            f"{name}: races and invalid accesses, which this device may hide, were not checked with a "
            f"simulator: {INSTALL}"
        )
        return []
    before = next(iter(CASES[name]())).before_source
    offset = before.count("\n") + 1 if before else 0
    try:
        found = findings_of(report_on(name, source), source)
    except InputError as error:  # no fault of the kernel: a simulator takes a thousand times as long
        say(f"{name}: {error}")
        return []
    said = with_lines((None if each.line is None else each.line - offset, each.sentence) for each in found)
    say(
        "\n".join(
            f"{name}: {each}" for each in said or ["oclgrind looked for races and invalid accesses and found none"]
        )
    )
    return said


def seconds_of(case: Case, source: str) -> Measured:
    """Time a kernel on a case, and return the fastest of five runs."""
    from course import run

    of = dict(out=case.before, group=case.group, kernel=case.kernel)
    return run(case.whole(source), case.size, *case.inputs, **of, runs=5)[0]


def _fault(case: Case, source: str) -> str:
    """Describe the first error of a kernel, or return ""."""
    import pyopencl as cl

    try:
        return fault_of(case, source)
    except cl.Error as error:
        if error.code != cl.status_code.BUILD_PROGRAM_FAILURE:
            return CRASHED
        if case.rewrite:  # the source as it is was compiled before
            return ""
        offset = case.before_source.count("\n") + 1 if case.before_source else 0
        said = with_lines(((each.line or 0) - offset, each.sentence) for each in plain_words(str(error)))
        return "the compiler rejects it; " + "; ".join(said)


def fault_of(case: Case, source: str) -> str:
    """Describe the first error in the output of a kernel, or return ""."""
    from course import run

    n = case.before.size
    guard = np.full(GUARDS, 1.5, np.float32)  # small enough that what is added to it shows
    inputs = [_padded(value) for value in case.inputs]
    out = np.concatenate([case.before, guard])
    _, whole = run(case.whole(source), case.size, *inputs, out=out, group=case.group, runs=1, kernel=case.kernel)
    if not np.array_equal(whole[n:], guard):
        return "it writes past the end of its output; which work-items have no work?"
    wrong = ~(np.abs(whole[:n].astype(float) - case.exact) <= case.allowed)
    if not wrong.any():
        return ""
    first = int(np.argmax(wrong))
    numbers = f"{int(wrong.sum())} of {n} numbers are wrong; {case.element(first)} is {whole[first]:.6g}"
    hints = [
        f"line {line}: {quotient} is 0, because C divides integers; write 1.0f / 3"
        for line, quotient in _integers(source)
    ]
    hints = hints or list(filter(None, [case.explain(whole[:n], wrong) or _of_all(whole[:n], case)]))
    return "; ".join([f"{numbers}, not {case.exact[first]:.6g}", *hints])


def _of_all(found: NDArray[np.float32], case: Case) -> str:
    """Report numbers that are all wrong by the same factor, or in the wrong places; or return ""."""
    if np.ndim(case.allowed) == 0 and np.abs(np.sort(found) - np.sort(case.exact)).max() <= case.allowed:
        return "the numbers are correct, but in the wrong places: what is the index of each?"
    counted = np.abs(case.exact) > 100 * case.allowed
    ratios = found[counted] / case.exact[counted]
    if not len(ratios) or not ratios[0] or not np.allclose(ratios, ratios[0], rtol=0.02):
        return ""
    return f"all are {np.median(ratios):.4g} times what they should be"


def _integers(source: str) -> Iterator[tuple[int, str]]:
    """Yield quotients of two integers that are less than one, with their line numbers."""
    for number, line in enumerate(source.splitlines(), 1):
        for found in INTEGERS.findall(line.partition("//")[0]):
            above, below = map(int, found.split("/"))
            if above < below:
                yield number, found


def _padded(value: Any) -> Any:
    """Append 0, 1, 0, 1, ... to an array, so that a kernel that reads beyond its end adds wrong values."""
    if isinstance(value, np.ndarray) and value.ndim:
        beyond = np.arange(GUARDS * value[0].size) % 2
        return np.concatenate([value, beyond.reshape(GUARDS, *value.shape[1:]).astype(value.dtype)])
    return value


def pair_cases() -> Iterator[Case]:
    """Kernels on pairs: a single pair, and ordered lists, in which neighbours share an atom."""
    from course import Pairs, pairs_of

    for cutoff, n_pairs in ((4.0, 1), (4.0, 206), (8.0, 2058)):
        whole = pairs_of("hexapeptide", cutoff)
        yield of_pairs(Pairs(whole.atoms, whole.pairs[:n_pairs]))


def of_pairs(pairs: Any) -> Case:
    """Create the case of a pair list."""

    def explain(found: NDArray[np.float32], wrong: NDArray[np.bool_]) -> str:
        sizes = np.abs(found[found != 0])
        if np.isnan(found).any() or (len(sizes) and sizes.min() < TINY):
            return (
                "these are the bits of an integer: a cast, or an assignment to an int, rounds the value of a float; "
                "as_int(as_float(...) + ...) keeps its bits"
            )
        if len(sizes) and sizes.max() > HUGE:
            return "the bits of the sum were used as its value: as_float(expected) is its value"
        if n == 1 and not len(sizes):
            return "nothing was added, or a float was rounded to an int; as_int(as_float(...) + ...) keeps its bits"
        if n == 1:
            return _of_pair(found.astype(float).reshape(-1, 3), exact.reshape(-1, 3), pairs)
        return (
            "a single pair is correct, so additions are lost: the value must be added to the current number, and the "
            "exchange repeated if the number seen is not the expected one"
        )

    n, exact = len(pairs.pairs), pairs.exact().ravel()
    return Case(
        f"{n:,} {'pair' if n == 1 else 'pairs'}", (-(-n // 16) * 16,), (16,), pairs.arguments, pairs.zeros().ravel(),
        exact, 1e-5 * np.abs(exact).max(), lambda k: f"that of atom {k // 3} along {'xyz'[k % 3]}", explain,
        kernel="atomic_pairs",
    )  # fmt: skip


def _of_pair(found: NDArray[np.float64], exact: NDArray[np.float64], pairs: Any) -> str:
    """Explain wrong gradients (n_atoms, 3) of a single pair."""
    i, j = pairs.pairs[0]
    r = float(np.linalg.norm((pairs.atoms[i] - pairs.atoms[j])[:3]))
    allowed = 1e-4 * np.abs(exact).max()
    if np.allclose(found, -exact, rtol=0, atol=allowed):
        return "the sign is wrong: these are forces, minus the gradient"
    for power, lacks in ((1, "1 / r"), (2, "1 / r2"), (-1, "r"), (-2, "r2")):
        if np.allclose(found, exact * r**power, rtol=1e-4, atol=allowed * r**power):
            return f"the slope lacks a factor {lacks}: it is -q q / r^3, times dx, dy and dz"
    alike = np.abs(found - exact) <= allowed
    if (alike | (np.abs(found + exact) <= allowed)).all():
        return "the gradient of the second atom must be minus that of the first, in x, y and z"
    if not found[exact != 0].all():
        return "a number is in the wrong place: x, y, z of atom i are numbers 3 * i, 3 * i + 1, 3 * i + 2"
    return ""


def timed_pairs() -> Case:
    """Many pairs."""
    from course import pairs_of

    return of_pairs(pairs_of("ubiquitin", 8.0))


def segment_cases() -> Iterator[Case]:
    """Sums for atoms over index lists, some of them empty; pairs are unordered, so the list matters."""
    from course import pairs_of

    whole = pairs_of("hexapeptide", 6.0, shuffled=True)
    yield of_segments(whole, 0, 1.0)
    yield of_segments(whole, 1, -1.0)


def of_segments(pairs: Any, axis: int, sign: float) -> Case:
    """Create the case of the atoms that are first, or second, in pairs."""
    n, atoms = len(pairs.atoms), pairs.pairs[:, axis]
    index = np.argsort(atoms, kind="stable").astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(atoms, minlength=n))]).astype(np.int32)
    stored = np.pad(pairs.of_pairs(), ((0, 0), (0, 1))).astype(np.float32)

    def added(of: NDArray[np.float32], begins: NDArray[np.int32], ends: NDArray[np.int32]) -> NDArray[np.float64]:
        sums = np.concatenate([np.zeros((1, 4)), np.cumsum(of.astype(float), axis=0)])
        ends = np.clip(ends, 0, len(of))
        totals: NDArray[np.float64] = 1 + sign * (sums[np.maximum(begins, ends)] - sums[begins])
        return totals.ravel()

    begins, ends, listed = offsets[:-1], offsets[1:], stored[index]
    exact = added(listed, begins, ends)
    allowed = 1e-5 * np.abs(exact).max()
    slips = [
        ("it uses pair k as the k-th of the list: that one is number index[k]", added(stored, begins, ends)),
        ("the sum replaces the previous value: = is used instead of +=", exact - 1),
        ("the sign of the sum is wrong: sign * sum is added", 2 - exact),
        ("each segment has one pair too many: it ends before offsets[i + 1]", added(listed, begins, ends + 1)),
        ("each segment begins at offsets[i], not with the first of all", added(listed, 0 * begins, ends)),
        ("each segment ends at offsets[i + 1], not with the last of all", added(listed, begins, 0 * ends + len(atoms))),
        ("each segment has one pair too few at its start", added(listed, np.minimum(begins + 1, ends), ends)),
        ("each segment has one pair too few at its end", added(listed, begins, np.maximum(ends - 1, begins))),
        ("the segment of atom i is the one from offsets[i] to offsets[i + 1], not its neighbour's",
         added(listed, ends, np.append(ends[1:], len(atoms)))),
        ("the segment of atom i is the one from offsets[i] to offsets[i + 1], not two of them",
         added(listed, begins, np.append(ends[1:], len(atoms)))),
        ("the segment of atom i is the one from offsets[i] to offsets[i + 1], not two of them",
         added(listed, np.insert(begins[:-1], 0, 0), ends)),
    ]  # fmt: skip

    def explain(found: NDArray[np.float32], wrong: NDArray[np.bool_]) -> str:
        for sentence, values in slips:
            # The last atoms' numbers depend on what lies beyond the arrays, the first ones' on what lies before.
            if np.abs(found - values)[4:-8].max() <= 2 * allowed:
                return sentence
        if (found[wrong] == 1).all():
            return "these are still 1, as the check filled the array before: nothing was added there"
        return ""

    return Case(
        f"{n:,} atoms that are {'first' if axis == 0 else 'second'} in {len(stored):,} pairs", (n // 16 * 16 + 16,),
        (16,), (n, stored, index, offsets, sign), np.ones(exact.size, np.float32), exact, allowed,
        lambda k: f"the gradient of atom {k // 4}, {'xyzw'[k % 4]}", explain, kernel="segments",
    )  # fmt: skip


def timed_segments() -> Case:
    """Many atoms."""
    from course import pairs_of

    return of_segments(pairs_of("ubiquitin", 8.0, shuffled=True), 0, 1.0)


OF_PAIRS = """
kernel void of_pairs(
    global const float8 *r2, global const float8 *rho, global const float8 *s, global float8 *terms)
{
    const int i = get_global_id(0);
    terms[i] = born8(r2[i], rho[i], s[i]);
}
"""
CALLS = """
kernel void calls(
    global const float8 *r2, global const float8 *rho, global const float8 *s, global float *called)
{
    born8(called, r2[0], rho[0], s[0]);
}
"""
SERIES = np.array([1 / 3, 2 / 5, 3 / 7, 4 / 9, 5 / 11])


def series_of(r: NDArray[np.float64], s: NDArray[np.float64], terms: int = 5) -> NDArray[np.float64]:
    """Sum the first terms of the series."""
    with np.errstate(all="ignore"):
        summed: NDArray[np.float64] = s**3 / r**4 * np.polyval(SERIES[:terms][::-1], (s / r) ** 2)
    return summed


def born_cases() -> Iterator[Case]:
    """Single terms of born8; whether it calls hct8 for far pairs; integrals with the loop of vectors.cl."""
    from course import born_of, kernel

    numbers = np.random.default_rng(1)
    rho, s = numbers.uniform(1.0, 1.8, (6, 8)), numbers.uniform(0.8, 1.5, (6, 8))
    rho, s = (np.concatenate([values, values[:1]]) for values in (rho, s))
    s[[1, 6]], rho[[1, 6]] = 0.4, 1.8  # far by rho + s, and not by 4 s
    far = np.maximum(4 * s, rho + s)
    r = far * np.linspace(1.002, 1.5, 8)
    r[6] = far[6] * np.linspace(0.75, 0.99, 8)
    r[2:4] = far[2:4] * np.linspace(0.25, 0.99, 8)
    r[4, ::2] = far[4, ::2] * np.linspace(0.3, 0.9, 4)
    r[5] = far[5] * np.linspace(0.3, 0.9, 8)
    r2 = (r * r).astype(np.float32)
    r2[5, 3] = 0
    yield of_terms(r2.ravel(), rho.astype(np.float32).ravel(), s.astype(np.float32).ravel())

    counted = kernel("hct8").replace("hct8(", "hct8(global float *called, ").replace(") {", ") {\n    *called += 1;", 1)
    inputs = tuple(values[:1].astype(np.float32).ravel() for values in (r2, rho, s))
    yield Case(
        "eight far pairs without a call of hct8", (1,), None, inputs, np.zeros(1, np.float32), np.zeros(1), 0.0,
        lambda k: "the number of calls of hct8",
        lambda found, wrong: "the first `if` must be true if no lane is near",
        before_source=counted, after_source=CALLS,
        rewrite=_counting,
    )  # fmt: skip
    yield of_molecule(born_of("hexapeptide"))


def _counting(source: str) -> str:
    """Pass a counter of calls through all functions of float8 to hct8."""
    own = DEFINED.findall(source)
    counted = re.sub(rf"(?<!float8 )\b(hct8|{'|'.join(own)})\s*\(", r"\1(called, ", DEFINED.sub(r"float8 \1(", source))
    return re.sub(rf"\bfloat8 ({'|'.join(own)})\(", r"float8 \1(global float *called, ", counted)


def of_terms(r2: NDArray[np.float32], rho: NDArray[np.float32], s: NDArray[np.float32]) -> Case:
    """Create the case of the terms of single pairs."""
    from course import kernel

    r, wide, scaled = np.sqrt(r2.astype(float)), rho.astype(float), s.astype(float)
    is_far = r >= np.maximum(4 * scaled, wide + scaled)
    exact = np.where(r > 0, hct_term(np.where(r > 0, r, 1), wide, scaled) / 2, 0)

    def element(k: int) -> str:
        of = f"r = {r[k]:.3g}, rho = {wide[k]:.3g}, s = {scaled[k]:.3g}"
        return f"the term of a {'far' if is_far[k] else 'near'} pair ({of})"

    def explain(found: NDArray[np.float32], wrong: NDArray[np.bool_]) -> str:
        near, far = wrong & ~is_far, wrong & is_far
        by_series = near & np.isfinite(found)
        is_series = bool(by_series.any() and np.allclose(found[by_series], series_of(r, scaled)[by_series], rtol=1e-4))
        if is_series and (wrong | (r > 2.5 * scaled)).all():  # beyond, the two hardly differ
            return (
                "every near pair has the value of the series, infinite for an atom with itself at r2 = 0: hct8 is for "
                "near pairs, r2 < far * far, and the series by itself is correct only if no lane is near, !any(near)"
            )
        if not np.isfinite(found).all():
            return (
                "one pair is an atom with itself, at r2 = 0, where the series is infinite: near is r2 < far * far, "
                "and the series by itself is correct only if no lane is near, !any(near)"
            )
        if is_series and (r[near] > 4 * scaled[near]).all():
            return (
                "pairs between 4 s and rho + s have the value of the series: a pair is far if it is beyond both, "
                "fmax(4 * s, rho + s)"
            )
        if is_series:
            return (
                "it is the value of the series for a near pair; r2 is the square of a distance: is it compared with "
                "far * far?"
            )
        if far.any() and np.allclose(found[far], series_of(r[far], scaled[far], 4), rtol=2e-6):
            return "the series ends one term too early; there are five"
        return "only far pairs, computed by the series, are wrong" if far.any() and not near.any() else ""

    return Case(
        f"{len(r)} pairs, near and far", (len(r) // 8,), None, (r2, rho, s), np.zeros(len(r), np.float32), exact,
        np.where(is_far, 5e-6 * exact, 1e-5 * exact.max()),
        element,
        explain, before_source=kernel("hct8"), after_source=OF_PAIRS,
    )  # fmt: skip


def of_molecule(of: Any) -> Case:
    """Create the case of the Born integrals of a molecule."""
    from course import kernel

    exact = np.pad(of.exact, (0, len(of.rho) - of.n_atoms))
    return Case(
        f"{of.n_atoms:,} atoms", (len(of.rho) // 8,), None, (len(of.rho), of.atoms, *of.columns, of.rho), of.zeros(),
        exact, np.where(np.arange(len(exact)) < of.n_atoms, 1e-5 * exact.max(), np.inf),
        "the integral of atom {}".format,
        before_source=kernel("hct8"), after_source=kernel("vectors").replace("hct8(", "born8("),
    )  # fmt: skip


def timed_born() -> Case:
    """Many atoms."""
    from course import born_of

    return of_molecule(born_of("ubiquitin"))


def bin_cases() -> Iterator[Case]:
    """Maps with a cutoff: all bins within reach, many bins, incomplete groups of points, few for a simulator."""
    for points, edge, cutoff in ((6, 6.0, 30.0), (8, 4.0, 8.0), (7, 2.5, 6.0), (5, 6.0, 5.0)):
        yield of_bins(points, edge, cutoff)


def of_bins(points: int, edge: float, cutoff: float, name: str = "hexapeptide") -> Case:
    """Create the case of a map with a cutoff."""
    from course import bins_of, map_of, within

    of = map_of(name, points)
    bins = bins_of(of, edge)
    x = np.arange(points**3)
    index = np.stack([x % points, x // points % points, x // points**2], axis=1)
    at = (of.corner[:3] + of.corner[3] * index).astype(float)
    r2 = ((at[:, None, :] - bins.atoms[None, :, :3]) ** 2).sum(axis=2)
    potential = bins.atoms[:, 3] / np.sqrt(r2) * (1 - r2 / cutoff**2) ** 2
    exact = within(of, cutoff, x)
    allowed = 2e-5 * np.abs(potential * (r2 < cutoff**2)).sum(axis=1).max()

    def explain(found: NDArray[np.float32], wrong: NDArray[np.bool_]) -> str:
        if (found == 0).all():
            return "nothing was added: bin b contains the atoms from begins[b] to begins[b + 1]"
        for axes, sentence in TURNED.items():
            if np.abs(found.reshape(3 * (points,)).transpose(axes).ravel() - exact).max() <= allowed:
                return f"{sentence} instead of `map`: x runs fastest, (k * ny + j) * nx + i"
        for sentence, counts in _slips(bins, np.floor(of.corner[3] * index / edge).astype(int), r2, cutoff):
            values = (potential * counts).sum(axis=1)
            if np.abs(found - values).max() <= 2 * allowed + 1e-5 * np.abs(values).max():
                return sentence
        return (
            ""
            if np.isfinite(found).all()
            else "a number is infinite or not a number: an atom that does not exist was read"
        )

    return Case(
        f"{points}^3 points, {len(bins.begins) - 1:,} bins of {edge:g} A, cutoff {cutoff:g} A",
        (-(-points // 4) * 4,) * 3, (4, 4, 4), bins.arguments(cutoff, of), np.zeros(points**3, np.float32), exact,
        allowed, lambda k: f"that of point {index[k].tolist()}", explain, kernel="cutoff_bins",
    )  # fmt: skip


def _slips(
    bins: Any, own: NDArray[np.int64], r2: NDArray[np.float64], cutoff: float
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield possible errors of a loop over bins, and how often each point then includes each atom."""
    inside, shape = r2 < cutoff**2, np.array(bins.shape)
    number = np.repeat(np.arange(len(bins.begins) - 1), np.diff(bins.begins))
    met = own[:, None, :] + bins.near(cutoff)[None, :, :3]

    def walk(order: tuple[int, int, int] = (0, 1, 2), low: int = 0, high: int = 0) -> NDArray[np.int64]:
        x, y, z = order
        b = (met[..., z] * shape[y] + met[..., y]) * shape[x] + met[..., x]
        counts = ((met >= low) & (met < shape + high)).all(axis=2)
        return np.stack([np.isin(number, b[p][counts[p]]) for p in range(len(met))]).astype(np.int64)

    last, first = (np.isin(np.arange(len(number)), ends) for ends in (bins.begins[1:] - 1, bins.begins[:-1]))
    mine = number == ((own[:, 2] * shape[1] + own[:, 1]) * shape[0] + own[:, 0])[:, None]
    yield "atoms beyond the cutoff are included: r2 must be less than cutoff * cutoff", walk()
    yield "r2 is the square of a distance: compare it with cutoff * cutoff", inside & (r2 < cutoff)
    yield "each bin has one atom too few at its end: it ends before begins[b + 1]", inside & ~last
    yield "each bin has one atom too few at its start: its first is begins[b]", inside & ~first
    there = ((met >= 0) & (met < shape)).all(axis=2).sum(axis=1)
    yield (
        "the point's own bin is used for each bin of the list: b is the number of `bin`",
        inside * mine * there[:, None],
    )
    yield "the last layer of bins is left out: bins are numbered from 0 to bins - 1", inside & walk(high=-1)
    yield "the first layer of bins is left out: bins are numbered from 0", inside & walk(low=1)
    yield "x and z are swapped in b: x runs fastest, (z * bins.y + y) * bins.x + x", inside & walk((2, 1, 0))
    yield "x and y are swapped in b: x runs fastest, (z * bins.y + y) * bins.x + x", inside & walk((1, 0, 2))


def timed_bins() -> Case:
    """A larger map."""
    return of_bins(16, 4.0, 12.0, "ubiquitin")


# Exercise -> what `pele-ocl check` needs besides. Eight numbers for a work-item, so that each must go on.
QUANTITIES: dict[str, list[str]] = {
    "atoms_outside": ["--as", "potmap", "--launch", "one"],
    "gather": ["--as", "potmap"],
    "coalesced": ["--as", "potmap"],
    "sum_tree": ["--as", "sum", "--points-per-item", "8"],
    "gather8": ["--as", "potmap"],
}
CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "atomic": pair_cases,
    "segments": segment_cases,
    "born8": born_cases,
    "cutoff_bins": bin_cases,
}
TIMED: dict[str, Callable[[], Case]] = {
    "atomic": timed_pairs,
    "segments": timed_segments,
    "born8": timed_born,
    "cutoff_bins": timed_bins,
}
SIMULATED = {"atomic": 1, "segments": 0, "born8": 0, "cutoff_bins": 3}  # number of the case that the simulator runs
EXERCISES = [*QUANTITIES, *CASES]
