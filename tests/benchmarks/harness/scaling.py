"""Time and device memory against the number of atoms."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pele_ocl.atoms import Atoms
from pele_ocl.bench.systems import ball_of_atoms
from pele_ocl.bench.timing import Timed, mean_of_middle, profiled
from pele_ocl.energy import Energy
from pele_ocl.grid import Grid
from pele_ocl.nonbond import Nonbond
from pele_ocl.opencl import Device
from pele_ocl.pairs import pairs_within
from pele_ocl.potmap import potmap
from pele_ocl.solvent import Solvent, choose_variant

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)
CUTOFF = 12.0
MAP_POINTS = 64  # along an edge
WARM_UP_ATOMS = 500
LONG_SECONDS = 1.0  # what is longer is timed once


@dataclass(frozen=True)
class Point:
    """Time and memory of a quantity for a number of atoms.

    seconds : of kernels; whole_seconds : wall time including preparation
    device_bytes : peak size of all buffers
    """

    quantity: str
    n_atoms: int
    variant: str
    precision: str
    device: str
    seconds: float
    whole_seconds: float
    device_bytes: int

    @property
    def bytes_per_atom(self) -> float:
        return self.device_bytes / self.n_atoms


@dataclass(frozen=True)
class End:
    """End of a curve: estimated time of the next size."""

    quantity: str
    n_atoms: int
    expected_seconds: float


class Result(Timed, Protocol):
    """A result with its variant."""

    @property
    def variant(self) -> str: ...


Evaluate = Callable[[], Result]
Ready = Callable[[Atoms, str, Device], Evaluate]  # makes a quantity ready


@dataclass(frozen=True)
class Radii:
    """Only Born radii, as a result with a time."""

    variant: str
    seconds: Mapping[str, float]


def _all_pairs(atoms: Atoms, precision: str, device: Device) -> Solvent:
    """Return a plan with the best exact variant for all pairs."""
    return Solvent(atoms, variant=choose_variant(device.kind, len(atoms)), precision=precision, device=device)


def _solvent(atoms: Atoms, precision: str, device: Device) -> Evaluate:
    return profiled(_all_pairs(atoms, precision, device).evaluate)


def _radii(atoms: Atoms, precision: str, device: Device) -> Evaluate:
    return partial(_radii_alone, _all_pairs(atoms, precision, device))


def _tree(atoms: Atoms, precision: str, device: Device) -> Evaluate:
    return partial(_radii_alone, Solvent(atoms, variant="tree", precision=precision, device=device))


def _radii_alone(plan: Solvent) -> Radii:
    return Radii(plan.variant, {"kernel": plan.radii_seconds()})


def _energy(atoms: Atoms, precision: str, device: Device) -> Evaluate:
    return profiled(Energy(atoms, precision=precision, device=device, born="pairs").evaluate)


def _nonbond(atoms: Atoms, precision: str, device: Device) -> Evaluate:
    pairs = pairs_within(atoms, CUTOFF)
    return profiled(Nonbond(atoms, pairs, solvent="vacuum", precision=precision, device=device).evaluate)


def _potmap(atoms: Atoms, precision: str, device: Device) -> Evaluate:
    grid = Grid((-MAP_POINTS / 4,) * 3, 0.5, (MAP_POINTS,) * 3)
    return lambda: potmap(atoms, grid, precision=precision, device=device)


@dataclass(frozen=True)
class Quantity:
    """order : exponent of the time as a function of the number of atoms"""

    about: str
    order: int
    ready: Ready


QUANTITIES = {
    "radii": Quantity("Born radii, all pairs", 2, _radii),
    "tree": Quantity("Born radii, over a tree of boxes to 1e-5", 1, _tree),
    "solvent": Quantity("Born radii and GB energy, all pairs", 2, _solvent),
    "energy": Quantity("all energy terms with the full gradient, all pairs", 2, _energy),
    "nonbond": Quantity(f"Lennard-Jones and Coulomb with gradient within {CUTOFF:g} A", 1, _nonbond),
    "potmap": Quantity(f"potential map of {MAP_POINTS} x {MAP_POINTS} x {MAP_POINTS} points", 1, _potmap),
}


def curve(
    name: str, sizes: Sequence[int], precision: str, device: Device, most_seconds: float, tell: Callable[[str], None],
    runs: int = 3,
) -> Iterator[Point | End]:  # fmt: skip
    """Measure one quantity for molecules of increasing size, until the next would exceed `most_seconds` in total.

    tell : called with progress messages
    """
    quantity, before = QUANTITIES[name], None
    quantity.ready(ball_of_atoms(WARM_UP_ATOMS), precision, device)()  # builds the kernels
    for n_atoms in sizes:
        if before is not None:
            expected = before.whole_seconds * (n_atoms / before.n_atoms) ** quantity.order
            if expected > most_seconds:
                yield End(name, n_atoms, expected)
                return
        tell(f"{name}, {precision}: {n_atoms:,} atoms")
        before = _point(name, quantity, n_atoms, precision, device, runs)
        yield before


def _point(name: str, quantity: Quantity, n_atoms: int, precision: str, device: Device, runs: int) -> Point:
    atoms = ball_of_atoms(n_atoms)
    gc.collect()
    device.buffers.start()
    start, before = time.perf_counter(), device.buffers.now
    evaluate = quantity.ready(atoms, precision, device)
    result = evaluate()
    whole, used = time.perf_counter() - start, device.buffers.most - before
    seconds = float(result.seconds["kernel"])
    if seconds < LONG_SECONDS:
        seconds = mean_of_middle(lambda: float(evaluate().seconds["kernel"]), runs)
    return Point(name, n_atoms, result.variant, precision, str(device), seconds, whole, used)
