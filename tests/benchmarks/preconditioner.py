"""Effect of the preconditioner in minimizations, changing one option at a time.

python tests/benchmarks/preconditioner.py [--systems hexapeptide,ubiquitin] [--tolerance 1] [--starts 5] [--device NAME]

minimizes each structure, using Amber99SB with OBC II, from --starts starting points with 0.1 A of noise, and prints the
mean number of iterations and evaluations, time, and final energy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import mean
from typing import Any
from unittest.mock import patch

from timing_tables.minimize import minimizer_of, starts_of

from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.common.installation import shipped
from pele_ocl.minimize import driver, lbfgs, method, preconditioner
from pele_ocl.reading import read

NEVER = 1 << 30

Change = Callable[[ExitStack], Any]


def blocks_of(n_atoms: int) -> Change:
    """Use blocks of this many atoms."""

    def change(stack: ExitStack) -> None:
        stack.enter_context(patch.multiple(preconditioner, BLOCK=n_atoms, HALF=n_atoms // 2, SIDE=3 * n_atoms))
        stack.enter_context(patch.object(method, "BLOCK", n_atoms))

    return change


def built(first: tuple[int, ...], every: int) -> Change:
    """Rebuild after these evaluations, and then at this interval."""
    return lambda stack: stack.enter_context(patch.multiple(driver, FIRST_BUILDS=first, BUILD_EVERY=every))


def stiffness(rest: float) -> Change:
    """Use another stiffness for the remaining terms."""
    return lambda stack: stack.enter_context(patch.object(preconditioner, "REST", rest))


def without_reach(stack: ExitStack) -> None:
    """Use a constant stiffness for the remaining terms, independent of the gradient."""
    stack.enter_context(patch.multiple(preconditioner, FIRST_STIFFNESS=0.0, REACH=1e9))


CHANGES: dict[str, Change] = {
    "unchanged": lambda stack: None,
    "without it": lambda stack: stack.enter_context(patch.object(lbfgs, "has_springs", lambda *_: False)),
    "built only at the start": built((0,), NEVER),
    "not built after 20": built((0, 5, 10, 20), NEVER),
    "built every 80 evaluations": built((0, 5, 10, 20, 40), 80),
    "10 kcal/mol/A^2 for the rest": stiffness(10.0),
    "40 kcal/mol/A^2 for the rest": stiffness(40.0),
    "the gradient adds nothing to it": without_reach,
    "blocks of 16 atoms": blocks_of(16),
    "blocks of 64 atoms": blocks_of(64),
}


def main() -> None:
    """Read the options and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="hexapeptide,ubiquitin", type=lambda text: text.split(","))
    parser.add_argument("--tolerance", default=1.0, type=float, help="kJ/mol/nm")
    parser.add_argument("--starts", default=5, type=int)
    parser.add_argument("--device")
    options = parser.parse_args()
    for name in options.systems:
        atoms = read(shipped("data") / "structures" / SYSTEMS[name])
        starts = starts_of(atoms, 0.1, options.starts)
        for label, change in CHANGES.items():
            with ExitStack() as stack:
                change(stack)
                plan = minimizer_of(atoms, "lbfgs", options.tolerance, "float32", options.device)
                plan.minimize(starts[0])
                begin = time.perf_counter()
                found = [plan.minimize(start) for start in starts]
                seconds = (time.perf_counter() - begin) / len(starts)
            iterations, evaluations = mean(one.iterations for one in found), mean(one.evaluations for one in found)
            energy = mean(one.energy_after.total for one in found)
            print(
                f"{name:12s} {options.tolerance:5.2f} kJ/mol/nm {label:30s} {iterations:7.1f} iterations, "
                f"{evaluations:7.1f} evaluations, {seconds:7.3f} s, {energy:10.2f} kcal/mol",
                flush=True,
            )


if __name__ == "__main__":
    main()
