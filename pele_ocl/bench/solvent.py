"""Tables 3.2 and 3.3 of the thesis: every solvent variant on structures of increasing size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..atoms import Atoms, Floats
from ..gb_models.solvent_model import SolventModel
from ..ladder import SOLVENT as VARIANTS
from ..ladder import SolventLadder
from ..ladder.solvent import Sequential
from ..opencl.device import Device
from ..opencl.queue import Queue
from ..reference import solvent as definition
from ..solvent import Solvent
from ..solvent.pair import Molecule
from .bounds import born_radius_bound, bounded
from .timing import mean_of_middle

SAMPLED_ABOVE = 5000  # atoms, above which sequential is timed on a sample of rows
SAMPLE_PAIRS = 2e7
CHECKED_ATOMS = 512  # atoms whose radii are compared with the reference


@dataclass(frozen=True)
class Timing:
    """One row of the table.

    seconds : device time from the start of the first kernel to the end of the last one
    sampled : whether the time was extrapolated from a sample of rows
    speedup : relative to sequential; None if that was not run
    error : largest relative error of a Born radius, compared to the float64 reference
    bounds, exact : as in bounds.Timing
    """

    system: str
    n_atoms: int
    precision: str
    variant: str
    device: str
    seconds: float
    sampled: bool
    speedup: float | None
    error: float
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True

    @property
    def pairs_per_second(self) -> float:
        return self.n_atoms**2 / self.seconds


def measure(
    name: str, atoms: Atoms, precision: str, device: Device, variants: Sequence[str] = tuple(VARIANTS), runs: int = 5
) -> Iterator[Timing]:
    """Time the variants on one structure, in the order of the table."""
    model = SolventModel()
    checked = np.linspace(0, len(atoms) - 1, min(CHECKED_ATOMS, len(atoms))).astype(int)
    assert atoms.gb_radii is not None
    assert atoms.gb_scales is not None
    _, exact = definition.born_radii(atoms.positions, atoms.gb_radii, atoms.gb_scales, model, checked)
    baseline = None
    for variant in (name for name in VARIANTS if name in variants):
        plan = SolventLadder(atoms, variant=variant, precision=precision, device=device, model=model)
        rows = _sample(len(atoms)) if VARIANTS[variant].cpu_only else None
        once = partial(_evaluated, plan) if rows is None else partial(_sampled, plan, rows)
        born = once()[1]  # also builds the kernels
        seconds = mean_of_middle(lambda: once()[0], runs)  # noqa: B023
        seconds *= 1 if rows is None else len(atoms) / rows
        if VARIANTS[variant].cpu_only:
            baseline = seconds
        compared = checked < len(born)
        error = float(np.abs(born[checked[compared]] / exact[compared] - 1).max())
        speedup = None if baseline is None else baseline / seconds
        sums, approximates = VARIANTS[variant].sums, VARIANTS[variant].approximates
        bounds = bounded(error=born_radius_bound(sums, precision, len(atoms), approximates))
        yield Timing(
            name, len(atoms), precision, variant, str(plan.device), seconds, rows is not None, speedup, error, bounds,
            VARIANTS[variant].exact,
        )  # fmt: skip


def _sample(n_atoms: int) -> int | None:
    return None if n_atoms <= SAMPLED_ABOVE else int(SAMPLE_PAIRS / n_atoms)


def _evaluated(plan: Solvent) -> tuple[float, Floats]:
    """Return the time for the Born radii, s, and the radii."""
    result = plan.evaluate(profile=True)
    return result.seconds["born"], result.born_radii


def _sampled(plan: Solvent, rows: int) -> tuple[float, Floats]:
    """Return the time of the double loop for the first atoms, s, and their radii."""
    queue = Queue(plan.device, plan.precision)
    molecule = Molecule.of(queue, plan.atoms, plan.model)
    Sequential(queue, molecule).compute_rows(queue, 0, rows)
    return queue.elapsed_seconds, queue.download(molecule.born, rows).astype(np.float64)
