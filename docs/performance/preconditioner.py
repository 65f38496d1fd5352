"""What the preconditioner of minimisation saves, with one thing changed at a time.

python docs/performance/preconditioner.py [--systems hexapeptide,ubiquitin] [--tolerance 1] [--starts 5] [--device NAME]

minimises each structure, Amber99SB with OBC II, from so many starts with 0.1 A of noise, and prints means: iterations,
evaluations, seconds, and the energy at the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import mean
from typing import Any
from unittest.mock import patch

from pele_ocl.bench.minimize import minimizer_of, starts_of
from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.minimize import preconditioner, steps
from pele_ocl.paths import shipped
from pele_ocl.reading import read

Change = Callable[[ExitStack], Any]


def blocks_of(n_atoms: int) -> Change:
    """Blocks of so many atoms."""

    def change(stack: ExitStack) -> None:
        stack.enter_context(patch.multiple(preconditioner, BLOCK=n_atoms, SIDE=3 * n_atoms))
        stack.enter_context(patch.object(steps, "BLOCK", n_atoms))

    return change


def without_terms(*names: str) -> Change:
    """No springs of these terms."""
    kept = preconditioner._spring_names

    def names_of(passes: Any) -> list[str]:
        return [name for name in kept(passes) if name not in names]

    return lambda stack: stack.enter_context(patch.object(preconditioner, "_spring_names", names_of))


def built(*evaluations: int) -> Change:
    """Built after these evaluations alone."""
    never = 1 << 30
    return lambda stack: stack.enter_context(patch.object(steps, "BUILDS", (*evaluations, never)))


CHANGES: dict[str, Change] = {
    "as it is": lambda stack: None,
    "without it": lambda stack: stack.enter_context(patch.object(steps, "is_preconditioned", lambda *_: False)),
    "built at the begin alone": built(0),
    "built every 50 evaluations": built(*range(0, 10_000, 50)),
    "without torsions": without_terms("torsion", "improper"),
    "20 kcal/mol/A^2 for the rest": lambda stack: stack.enter_context(patch.object(preconditioner, "REST", 20.0)),
    "80 kcal/mol/A^2 for the rest": lambda stack: stack.enter_context(patch.object(preconditioner, "REST", 80.0)),
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
