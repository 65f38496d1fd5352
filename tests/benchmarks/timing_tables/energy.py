"""Complete energy with full gradient, without cutoff: variants of pele-ocl and OpenMM platforms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pele_ocl.atoms import Atoms, Floats
from pele_ocl.bench.bounds import ENERGY, GRADIENT, bounded
from pele_ocl.bench.timing import mean_of_middle, wall_seconds, wall_seconds_of_many
from pele_ocl.energy import VARIANTS, Energy, energy
from pele_ocl.gb_models.solvent_model import SolventModel
from pele_ocl.opencl.device import Device, get_cpu_device
from timing_tables.installed import AbsentError
from timing_tables.openmm import PLATFORMS, OpenMM, whole_energy

SHAKE = 0.01  # A, by which the conformations of a batch differ
SEED = 1
# The baseline of speed-ups first; the Reference platform takes seconds and is left to tests/benchmarks/peers.py.
_OPENMM = ("CPU", *(name for name in PLATFORMS if name not in ("CPU", "Reference")))


@dataclass(frozen=True)
class Timing:
    """One row of the table.

    code : a variant of pele-ocl, or `OpenMM` with its platform
    conformations : evaluated in one call
    seconds : wall time per conformation: positions in, energy and gradient out
    kernel_seconds : per conformation. For one, positions and results stay on the device; for a batch, kernel time is
        divided. None if unknown
    speedup : over OpenMM's CPU platform in the same run; None if it is not available
    energy_error, gradient_error : relative to float64 on the CPU, the gradient by norm
    bounds, exact : as in bounds.Timing; none for OpenMM
    """

    system: str
    n_atoms: int
    precision: str
    code: str
    device: str
    conformations: int
    seconds: float
    kernel_seconds: float | None
    speedup: float | None
    energy_error: float
    gradient_error: float
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True


def measure(
    name: str, atoms: Atoms, precision: str, device: Device, variants: Sequence[str] = tuple(VARIANTS),
    conformations: int = 1, runs: int = 5, peers: bool = True,
) -> Iterator[Timing]:  # fmt: skip
    """Time the available OpenMM platforms, and then pele-ocl, on one structure."""
    model = SolventModel()
    exact = energy(atoms, model=model, precision="float64", device=get_cpu_device(device))
    assert exact.gradient is not None
    exact_total, exact_gradient = exact.total, exact.gradient
    bounds = bounded(energy_error=ENERGY[precision], gradient_error=GRADIENT[precision])
    baseline = None

    def timing(
        code: str, where: str, count: int, seconds: float, kernel: float | None, total: float, gradient: Floats
    ) -> Timing:
        error = float(np.linalg.norm(gradient - exact_gradient) / np.linalg.norm(exact_gradient))
        return Timing(
            name, len(atoms), precision, code, where, count, seconds, kernel,
            None if baseline is None else baseline / seconds, abs(total / exact_total - 1), error,
            bounds if code in VARIANTS else {},
        )  # fmt: skip

    for platform in _OPENMM if peers else ():
        try:
            peer = OpenMM.of(whole_energy(atoms, model), atoms.positions, platform, precision)
        except AbsentError:
            continue
        total, gradient = peer.evaluate()
        seconds = wall_seconds(peer.evaluate, runs)
        if platform == "CPU":
            baseline = seconds
        yield timing(f"OpenMM {platform}", platform, 1, seconds, None, total, gradient)
    for variant in (key for key in VARIANTS if key in variants):
        plan = Energy(atoms, model=model, precision=precision, variant=variant, born="pairs", device=device)
        result = plan.evaluate()  # also builds the kernels
        assert result.gradient is not None
        kernel = wall_seconds_of_many(plan.repeat, runs)
        seconds = wall_seconds(plan.evaluate, runs)
        yield timing(variant, result.device, 1, seconds, kernel, result.total, result.gradient)
        if conformations > 1:
            shake = np.random.default_rng(SEED).normal(0, SHAKE, (conformations, len(atoms), 3))
            shake[0] = 0
            positions = atoms.positions + shake
            batch = plan.evaluate_batch(positions)
            assert batch.gradients is not None
            kernel = mean_of_middle(
                lambda: plan.evaluate_batch(positions, profile=True).seconds["kernel"],  # noqa: B023
                runs,
            )
            seconds = wall_seconds(lambda: plan.evaluate_batch(positions), runs) / conformations  # noqa: B023
            yield timing(
                variant, batch.device, conformations, seconds, kernel / conformations, float(batch.total[0]),
                batch.gradients[0],
            )  # fmt: skip
