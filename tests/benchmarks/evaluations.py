"""Process for before_after.py that times one checkout; reads cases and counts from stdin, writes JSON to stdout."""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import IO, Any

CUTOFF = 12.0  # A, of the pair lists

Plan = Callable[[], float]  # evaluates once; seconds


@dataclass(frozen=True)
class Case:
    """One row of the table; measure : "kernels" or "call"."""

    quantity: str
    system: str
    precision: str
    variant: str
    measure: str
    device: str | None

    @property
    def cells(self) -> tuple[str, ...]:
        """Columns of the row."""
        return self.quantity, self.system, self.precision, self.variant, self.measure


def serve(answers: IO[str]) -> None:
    """Answer requests until stdin ends."""
    import pele_ocl
    from pele_ocl import Solvent
    from pele_ocl.bench.systems import load

    plan: Plan | None = None

    def answer(value: object) -> None:
        print(json.dumps(value), file=answers, flush=True)

    answer(str(Path(pele_ocl.__file__).resolve().parent.parent))
    answer(Solvent(load("hexapeptide"), device=json.loads(sys.stdin.readline())).device.kind)
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            assert plan is not None
            answer(median(plan() for _ in range(request)))
            continue
        plan = None  # and its memory on the device
        try:
            plan = PLANS[request["quantity"]](Case(**request))
            plan()  # builds the kernels
            start = time.perf_counter()
            plan()
            answer(time.perf_counter() - start)
        except Exception as error:  # told as the reason why this case has no figures
            answer(f"{type(error).__name__}: {error}")


def _profiled(evaluate: Callable[..., object]) -> dict[str, bool]:
    """Return the options that enable kernel timing; older checkouts always time kernels."""
    return {"profile": True} if "profile" in inspect.signature(evaluate).parameters else {}


def _timed(case: Case, evaluate: Callable[..., object], **options: object) -> Plan:
    """Time the kernels of an evaluation, or the complete call."""
    profile = _profiled(evaluate)

    def kernels() -> float:
        return float(evaluate(**options, **profile).seconds["kernel"])  # type: ignore[attr-defined]

    def call() -> float:
        start = time.perf_counter()
        evaluate(**options)
        return time.perf_counter() - start

    return kernels if case.measure == "kernels" else call


def _class_of(name: str) -> Callable[..., Any]:
    """Return the plan class that supports all rungs; older checkouts without pele_ocl.ladder use the main class."""
    import pele_ocl

    found: Callable[..., Any] = getattr(getattr(pele_ocl, "ladder", None), f"{name}Ladder", getattr(pele_ocl, name))
    return found


def _solvent(case: Case) -> Plan:
    from pele_ocl.bench.systems import load

    plan = _class_of("Solvent")(load(case.system), variant=case.variant, precision=case.precision, device=case.device)
    return _timed(case, plan.evaluate)


def _nonbond(case: Case) -> Plan:
    from pele_ocl import pairs_within
    from pele_ocl.bench.systems import load

    atoms = load(case.system)
    assert atoms.gb_radii is not None
    pairs, born = pairs_within(atoms, CUTOFF), 2 * atoms.gb_radii
    plan = _class_of("Nonbond")(atoms, pairs, variant=case.variant, precision=case.precision, device=case.device)
    return _timed(case, plan.evaluate, born_radii=born)


def _energy(case: Case) -> Plan:
    from pele_ocl import Energy
    from pele_ocl.bench.systems import load

    plan = Energy(load(case.system), variant=case.variant, precision=case.precision, device=case.device)
    plan.evaluate()
    if case.measure == "call":
        return _timed(case, plan.evaluate)

    def several() -> float:
        start = time.perf_counter()
        plan.repeat(4)
        return (time.perf_counter() - start) / 4

    return several


def _potmap(case: Case) -> Plan:
    from pele_ocl import potmap
    from pele_ocl.bench.potmap import random_system

    points, n_atoms = map(int, case.system.split("^3 x "))
    atoms, grid = random_system(points, n_atoms)
    return _timed(
        case, partial(potmap, atoms, grid, variant=case.variant, precision=case.precision, device=case.device)
    )


PLANS: dict[str, Callable[[Case], Plan]] = {
    "solvent": _solvent, "nonbond": _nonbond, "energy": _energy, "potmap": _potmap,
}  # fmt: skip


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # compilers and runtimes may print what they like
    serve(replies)
