"""Timing of a kernel and of the ladder of variants for the same quantity and atoms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ..atoms import Atoms
from ..gb_models.solvent_model import SolventModel
from ..grid import Grid
from ..ladder import NONBOND as NONBOND_VARIANTS
from ..ladder import POTMAP as POTMAP_VARIANTS
from ..ladder import SOLVENT as SOLVENT_VARIANTS
from ..ladder import NonbondLadder, SolventLadder
from ..nonbond import Nonbond
from ..opencl import Device
from ..pairs import PairList
from ..potmap import potmap
from ..solvent import Solvent
from ..units import COULOMB_KCAL_A
from .cases import Case, timed_map
from .findings import LadderTime
from .running import Runner

RUNS = 3
MOST_SECONDS = 0.5  # slower runs are not repeated


def timed(runner: Runner, cases: Sequence[Case]) -> Iterator[LadderTime]:
    """Time a kernel and the variants of its ladder on the largest case, or on a larger map."""
    largest = max(cases, key=lambda case: sum(getattr(value, "size", 0) for value in case.values.values()))
    case = timed_map() if runner.quantity.output == "map" else largest
    yield LadderTime(runner.compiled.kernel, fastest(lambda: runner.outcome(case).seconds), case.name)
    ladder = LADDERS.get(runner.quantity.name)
    if ladder is not None:
        for name, measure in ladder(case, runner.queue.device, runner.compiled.precision):
            yield LadderTime(name, fastest(measure), case.name)


def fastest(measure: Callable[[], float]) -> float:
    """Return the fastest of several runs, without the first one, which may build kernels."""
    first = measure()
    return first if first > MOST_SECONDS else min(measure() for _ in range(RUNS))


Measures = Iterator[tuple[str, Callable[[], float]]]


def _potmap(case: Case, device: Device, precision: str) -> Measures:
    """Time the variants with direct summation."""
    x, y, z, charges = case.values["atoms"].T
    *corner, spacing = case.values["corner"]
    atoms = Atoms(positions=np.column_stack([x, y, z]), charges=charges / COULOMB_KCAL_A)
    grid = Grid(corner, spacing, (case.size("nx"), case.size("ny"), case.size("nz")))
    for name, variant in POTMAP_VARIANTS.items():
        if variant.method == "direct" and not variant.cpu_only:
            yield name, partial(_map_seconds, atoms, grid, name, precision, device)


def _map_seconds(atoms: Atoms, grid: Grid, variant: str, precision: str, device: Device) -> float:
    result = potmap(atoms, grid, variant=variant, precision=precision, device=device, min_distance=0)
    return result.seconds["kernel"]


def _step_seconds(plan: Solvent | Nonbond, step: str) -> float:
    return plan.evaluate(profile=True).seconds[step]


def _born(case: Case, device: Device, precision: str) -> Measures:
    """Time the Born radii of all variants that run on all devices."""
    model = SolventModel()
    x, y, z, rho = case.values["atoms"].T
    atoms = Atoms(
        positions=np.column_stack([x, y, z]), charges=np.zeros(len(x)), gb_radii=rho + model.offset,
        gb_scales=case.values["scaled"] / rho,
    )  # fmt: skip
    for name, variant in SOLVENT_VARIANTS.items():
        if not variant.cpu_only:
            plan = SolventLadder(atoms, variant=name, precision=precision, device=device, model=model, energy=False)
            yield name, partial(_step_seconds, plan, "born")


def _nonbond(with_gradient: bool, case: Case, device: Device, precision: str) -> Measures:
    """Time the correct variants that run on the device."""
    x, y, z, charges = case.values["atoms"].T
    values = case.values
    atoms = Atoms(
        positions=np.column_stack([x, y, z]), charges=charges / np.sqrt(COULOMB_KCAL_A), lj_sigma=values["sigma"],
        lj_epsilon=values["epsilon"],
    )  # fmt: skip
    first, second = map(np.ascontiguousarray, values["pairs"].T)
    pairs = PairList(len(atoms), first, second)
    for name, variant in NONBOND_VARIANTS.items():
        if variant.exact and not variant.cpu_only and variant.made_for in (None, device.kind):
            if variant.float_atomics and not device.has_float_atomics(precision):
                continue
            plan = NonbondLadder(
                atoms, pairs, solvent="vacuum", gradient=with_gradient, variant=name, precision=precision, device=device
            )
            yield name, partial(_step_seconds, plan, "kernel")


LADDERS: dict[str, Callable[[Case, Device, str], Measures]] = {
    "potmap": _potmap,
    "born": _born,
    "nonbond": partial(_nonbond, True),
    "pair-energy": partial(_nonbond, False),
}
