"""Exercises of the course: what a kernel of yours is run on, and what NumPy says it must give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from course import Map

GUARDS = 64  # numbers after the output that no kernel may touch


@dataclass(frozen=True, eq=False)
class Case:
    """One launch of an exercise.

    about : in words; size, group : work-items in all and in a group
    inputs : the kernel's arguments before its output; before : the output as the kernel finds it
    exact : what it must hold afterwards, float64; tolerance : relative to the largest of these
    """

    about: str
    size: tuple[int, ...]
    group: tuple[int, ...] | None
    inputs: tuple[Any, ...]
    before: NDArray[Any]
    exact: NDArray[np.float64]
    tolerance: float = 1e-5


def check(name: str, source: str) -> bool:
    """Run a kernel on the cases of an exercise, say what it does wrong, and return True if nothing."""
    import pyopencl as cl

    if blank := [number for number, line in enumerate(source.splitlines(), 1) if "____" in line]:
        print(f"{name}: line {blank[0]} still has its blank")
        return False
    for case in EXERCISES[name](source):
        try:
            fault = fault_of(case, source)
        except cl.RuntimeError as error:  # a compiler's words are long; its first error line says enough
            lines = [line for line in str(error).splitlines() if "error:" in line] or str(error).splitlines()
            fault = f"the compiler says: {lines[0].strip()}"
        if fault:
            print(f"{name}, {case.about}: {fault}")
            return False
        print(f"{name}, {case.about}: right")
    return True


def fault_of(case: Case, source: str) -> str:
    """Describe the first thing that is wrong with what a kernel wrote, or ""."""
    from course import run

    n = case.before.size
    guard = np.full(GUARDS, 0x7F7F7F7F, np.int32).view(case.before.dtype)
    _, whole = run(source, case.size, *case.inputs, out=np.concatenate([case.before, guard]), group=case.group, runs=1)
    found = whole[:n].view(np.float32).astype(float) if case.exact.dtype.kind == "f" else whole[:n]
    if not np.array_equal(whole[n:].view(np.int32), guard.view(np.int32)):
        return "it writes past the end of its output; which work-items have nothing to do?"
    wrong = ~(np.abs(found - case.exact) <= case.tolerance * max(np.abs(case.exact).max(), 1e-30))
    if not wrong.any():
        return ""
    first = int(np.argmax(wrong))
    return (
        f"{int(wrong.sum())} of {n} numbers are wrong, the first at index {first}: {found[first]:.6g}, "
        f"not {case.exact[first]:.6g}"
    )


def map_cases(
    size: Callable[[Map, str], tuple[int, ...]], group: tuple[int, ...] | None
) -> Callable[[str], Iterator[Case]]:
    """Make the cases of kernels that compute a map: one atom and point, then numbers that no group divides."""

    def cases(source: str) -> Iterator[Case]:
        from course import Map, map_of

        whole = map_of("hexapeptide")
        for n_atoms, shape in ((1, (1, 1, 1)), (7, (5, 3, 2)), (96, (37, 6, 5))):
            part = Map(whole.atoms[:n_atoms], shape, whole.corner)
            exact = part.exact(np.arange(np.prod(shape)))
            about = f"{n_atoms} {'atom' if n_atoms == 1 else 'atoms'} and {' x '.join(map(str, shape))} points"
            yield Case(about, size(part, source), group, part.arguments, part.zeros().ravel(), exact)

    return cases


def points_of(source: str) -> int:
    """Read how many points a work-item of a kernel owns: 1 if it does not say POINTS = ..."""
    found = re.search(r"POINTS = (\d+)", source)
    return int(found[1]) if found else 1


def one_item(_: Map, __: str) -> tuple[int, ...]:
    """A single work-item."""
    return (1, 1, 1)


def along_rows(case: Map, source: str) -> tuple[int, ...]:
    """Work-items of kernels that own some points of a row each."""
    nx, ny, nz = case.shape
    return (-(-nx // points_of(source)), ny, nz)


EXERCISES: dict[str, Callable[[str], Iterator[Case]]] = {
    "atoms_outside": map_cases(one_item, None),
    "gather": map_cases(along_rows, (4, 2, 2)),
    "coalesced": map_cases(along_rows, (4, 2, 1)),
}
