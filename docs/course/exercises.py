"""Exercises of the course: what a kernel of yours is run on, and what NumPy says it must give.

Kernels that compute a quantity of pele-ocl by themselves are checked by `pele-ocl check`. Three are a step of several,
or a function in a given loop: these are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CRASHED = "it crashed; which index lies outside its array?"
GUARDS = 64  # numbers after the output that no kernel may touch


@dataclass(frozen=True, eq=False)
class Case:
    """One launch of an exercise.

    about : in words; size, group : work-items in all and in a group
    inputs : the kernel's arguments before its output; before : the output as the kernel finds it
    exact : what it must hold afterwards, float64; tolerance : relative to the largest of these
    before_source, after_source : what is compiled with it, where it is a function and not a kernel
    """

    about: str
    size: tuple[int, ...]
    group: tuple[int, ...] | None
    inputs: tuple[Any, ...]
    before: NDArray[Any]
    exact: NDArray[np.float64]
    tolerance: float = 1e-5
    before_source: str = ""
    after_source: str = ""

    def whole(self, source: str) -> str:
        """All that is compiled for a solution."""
        return "\n".join(filter(None, [self.before_source, source, self.after_source]))


def check(name: str, source: str) -> bool:
    """Run a kernel on the cases of an exercise, say what it does wrong, and return True if nothing."""
    import pyopencl as cl
    from course import kernel

    if blank := [number for number, line in enumerate(source.splitlines(), 1) if "____" in line]:
        print(f"{name}: line {blank[0]}: the blank `____` is still to be filled")
        return False
    for case in CASES[name]():
        try:
            fault = fault_of(case, source)
        except cl.Error as error:
            is_built = error.code != cl.status_code.BUILD_PROGRAM_FAILURE
            print(f"{name}: {CRASHED if is_built else _compiler_says(str(error), case)}")
            return False
        if fault:
            print(f"{name}, {case.about}: {fault}")
            return False
        print(f"{name}, {case.about}: right")
    if name == "atomic" and not _is_free_of_races(source):
        return False
    yours, solution = seconds_of(case, source), seconds_of(case, kernel(name))
    print(f"{name}, the last of these: yours takes {1e6 * yours:.0f} us, the solution {1e6 * solution:.0f} us")
    return True


def _is_free_of_races(source: str) -> bool:
    """Have the simulator look for races, which the device may hide, and say what it saw."""
    from course import INSTALL, race_in, simulator

    if simulator() is None:
        print(f"atomic: no simulator looked for races, which this device may hide: {INSTALL}")
        return True
    race = race_in(source)
    print(f"atomic: {race or 'oclgrind looked for races and found none'}")
    return not race


def seconds_of(case: Case, source: str) -> float:
    """Time a kernel on a case, the fastest of five runs."""
    from course import run

    return run(case.whole(source), case.size, *case.inputs, out=case.before, group=case.group, runs=5)[0]


def _compiler_says(text: str, case: Case) -> str:
    """Shorten a compiler's words to its first error and the line of the kernel."""
    found = re.search(r":(\d+):\d+: (?:error: )?(.*)", text) if "error:" in text else None
    if not found:
        return text.splitlines()[0]
    line = int(found[1]) - (case.before_source.count("\n") + 1 if case.before_source else 0)
    return f"the compiler says, line {line}: {found[2]}"


def fault_of(case: Case, source: str) -> str:
    """Describe the first thing that is wrong with what a kernel wrote, or ""."""
    from course import run

    n = case.before.size
    guard = np.full(GUARDS, 1.5, np.float32)  # small enough that what is added to it shows
    source = case.whole(source)
    inputs = [_padded(value) for value in case.inputs]
    _, whole = run(source, case.size, *inputs, out=np.concatenate([case.before, guard]), group=case.group, runs=1)
    found = whole[:n].astype(float)
    if not np.array_equal(whole[n:], guard):
        return "it writes past the end of its output; which work-items have nothing to do?"
    wrong = ~(np.abs(found - case.exact) <= case.tolerance * max(np.abs(case.exact).max(), 1e-30))
    if not wrong.any():
        return ""
    first = int(np.argmax(wrong))
    return (
        f"{int(wrong.sum())} of {n} numbers are wrong, the first at index {first}: {found[first]:.6g}, "
        f"not {case.exact[first]:.6g}"
    )


def _padded(value: Any) -> Any:
    """Put 0, 1, 0, 1, ... after an array: a kernel that reads too far does not crash, but adds what it should not."""
    if isinstance(value, np.ndarray) and value.ndim:
        beyond = np.arange(GUARDS * value[0].size) % 2
        return np.concatenate([value, beyond.reshape(GUARDS, *value.shape[1:]).astype(value.dtype)])
    return value


def pair_cases() -> Iterator[Case]:
    """Kernels over pairs: a single one, and lists in order, in which neighbours share an atom."""
    from course import Pairs, pairs_of

    for cutoff, n_pairs in ((4.0, 1), (4.0, 206), (8.0, 2058)):
        whole = pairs_of("hexapeptide", cutoff)
        part = Pairs(whole.atoms, whole.pairs[:n_pairs])
        size, before = (-(-n_pairs // 16) * 16,), part.zeros().ravel()
        about = f"{n_pairs} {'pair' if n_pairs == 1 else 'pairs'}"
        yield Case(about, size, (16,), part.arguments, before, part.exact().ravel())


def segment_cases() -> Iterator[Case]:
    """Sums of atoms over index lists, some of no pair at all."""
    from course import pairs_of

    whole = pairs_of("hexapeptide", 6.0)
    for axis, sign in ((0, 1.0), (1, -1.0)):
        atoms = whole.pairs[:, axis]
        index = np.argsort(atoms, kind="stable").astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(atoms, minlength=len(whole.atoms)))]).astype(np.int32)
        stored = np.pad(whole.of_pairs(), ((0, 0), (0, 1))).astype(np.float32)
        exact = np.ones((len(whole.atoms), 4))
        np.add.at(exact, atoms, sign * stored.astype(float))
        inputs, before = (len(exact), stored, index, offsets, sign), np.ones(exact.size, np.float32)
        about = f"96 atoms that are {'first' if axis == 0 else 'second'} in {len(stored)} pairs"
        yield Case(about, (112,), (16,), inputs, before, exact.ravel())


def born_cases() -> Iterator[Case]:
    """Born integrals by born8, called from the loop of vectors.cl, with near and far pairs."""
    from course import born_of, kernel

    hexapeptide = born_of("hexapeptide")
    exact = np.pad(hexapeptide.exact, (0, len(hexapeptide.rho) - hexapeptide.n_atoms))
    loop = kernel("vectors").replace("hct8(", "born8(")
    inputs = (len(hexapeptide.rho), hexapeptide.atoms, *hexapeptide.columns, hexapeptide.rho)
    yield Case(
        "96 atoms", (len(hexapeptide.rho) // 8,), None, inputs, hexapeptide.zeros(), exact,
        before_source=kernel("hct8"), after_source=loop,
    )  # fmt: skip


# Exercise -> what `pele-ocl check mine.cl` needs besides. Eight numbers for a work-item, so that each must go on.
QUANTITIES: dict[str, list[str]] = {
    "atoms_outside": ["--as", "potmap", "--launch", "one"],
    "gather": ["--as", "potmap"],
    "coalesced": ["--as", "potmap"],
    "sum_tree": ["--as", "sum", "--points-per-item", "8"],
    "gather8": ["--as", "potmap"],
}
CASES: dict[str, Callable[[], Iterator[Case]]] = {"atomic": pair_cases, "segments": segment_cases, "born8": born_cases}
EXERCISES = [*QUANTITIES, *CASES]
