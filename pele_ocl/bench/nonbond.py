"""Tables 4.2 to 4.9 of the thesis: all methods to sum a gradient, on sorted and shuffled pair lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..atoms import Atoms, Floats
from ..ladder import NONBOND as VARIANTS
from ..ladder import NonbondLadder
from ..nonbond import NonbondResult
from ..opencl.device import Device
from ..pairs import PairList, pairs_within
from ..reference.nonbond import ReferenceNonbonded
from ..reference.nonbond import nonbond as definition
from ..solvent import solvent
from .bounds import GRADIENT, TERM, bounded
from .timing import kernel_seconds, mean_of_middle

SEED = 1
# The float64 reference takes about ten seconds for this many pairs.
MOST_CHECKED_PAIRS = 12_000_000


@dataclass(frozen=True)
class Timing:
    """One row of the table.

    order : "sorted" or "shuffled" list; with_gradient : False for energies only
    prepare_seconds : preparation, once per list; seconds : kernels of one evaluation
    speedup : relative to sequential; None if that was not run
    energy_error, gradient_error : relative to the float64 reference, the gradient by norm; None if unknown
    bounds, exact : as in bounds.Timing
    """

    system: str
    n_atoms: int
    n_pairs: int
    order: str
    precision: str
    with_gradient: bool
    variant: str
    device: str
    prepare_seconds: float
    seconds: float
    speedup: float | None
    energy_error: float | None
    gradient_error: float | None
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True

    @property
    def pairs_per_second(self) -> float:
        return self.n_pairs / self.seconds


@dataclass(frozen=True, eq=False)
class Case:
    """A structure with its pair list in several orders, and the exact results.

    lists : "sorted" by atoms, and "shuffled"
    born_radii : (n,) A
    exact : energies and gradient of the float64 reference; None if they would take too long
    """

    name: str
    atoms: Atoms
    lists: Mapping[str, PairList]
    born_radii: Floats
    exact: ReferenceNonbonded | None

    @classmethod
    def of(cls, name: str, atoms: Atoms, cutoff: float, device: Device) -> Case:
        pairs = pairs_within(atoms, cutoff)
        precision = "float64" if device.has_float64 else "float32"
        born = solvent(atoms, precision=precision, device=device, energy=False).born_radii
        known = len(pairs) <= MOST_CHECKED_PAIRS
        exact = definition(atoms, pairs.first, pairs.second, born_radii=born) if known else None
        return cls(name, atoms, {"sorted": pairs, "shuffled": pairs.shuffled(SEED)}, born, exact)

    def __len__(self) -> int:
        return len(self.lists["sorted"])


def measure(
    case: Case, order: str, precision: str, with_gradient: bool, device: Device,
    variants: Sequence[str] = tuple(VARIANTS), runs: int = 5,
) -> Iterator[Timing]:  # fmt: skip
    """Time the variants on one list with at least one pair, in the order of the table."""
    atoms, pairs, born = case.atoms, case.lists[order], case.born_radii
    baseline = None
    for variant in (name for name in VARIANTS if name in variants):
        if VARIANTS[variant].float_atomics and not device.has_float_atomics(precision):
            continue
        plan = NonbondLadder(atoms, pairs, gradient=with_gradient, variant=variant, precision=precision, device=device)
        result = plan.evaluate(born_radii=born)  # also builds the kernels
        fresh = NonbondLadder(atoms, pairs, gradient=with_gradient, variant=variant, precision=precision, device=device)
        prepare = fresh.evaluate(born_radii=born).seconds["prepare"]
        seconds = mean_of_middle(lambda: kernel_seconds(plan.evaluate, born_radii=born), runs)  # noqa: B023
        if VARIANTS[variant].cpu_only:
            baseline = seconds
        yield Timing(
            case.name, len(atoms), len(pairs), order, precision, with_gradient, variant, result.device, prepare,
            seconds, None if baseline is None else baseline / seconds, *_errors(result, case.exact),
            bounded(energy_error=TERM[precision], gradient_error=GRADIENT[precision]), VARIANTS[variant].exact,
        )  # fmt: skip


def _errors(result: NonbondResult, exact: ReferenceNonbonded | None) -> tuple[float | None, float | None]:
    """Return the largest relative error of an energy, and the relative error of the gradient by norm."""
    if exact is None:
        return None, None
    energies = [(getattr(result, term), getattr(exact, term)) for term in ("lennard_jones", "coulomb", "gb_pair")]
    energy_error = max(abs(value - wanted) / max(abs(wanted), 1e-12) for value, wanted in energies)
    gradient: Floats | None = result.gradient
    if gradient is None:
        return energy_error, None
    return energy_error, float(np.linalg.norm(gradient - exact.gradient) / np.linalg.norm(exact.gradient))
