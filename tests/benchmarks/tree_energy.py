"""Energy and gradient with Born radii from all pairs and from the tree: times and differences.

python tests/benchmarks/tree_energy.py DEVICE SYSTEM[,SYSTEM...] [RUNS]

Systems are those of tests/benchmarks/tree.py in tests/data. "evaluate" is the wall time of Energy.evaluate() in
float32, the best of the runs, without measuring the error, the time of which is in "error"; differences are relative to
all pairs in float64. Kernel times are printed below.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from pele_ocl import Atoms, Energy
from pele_ocl.energy import EnergyResult
from pele_ocl.opencl.queue import seconds_of
from pele_ocl.plan.pipeline import Pipeline

DATA = Path(__file__).parents[2] / "tests" / "data"
HEADS = ("system", "atoms", "born", "evaluate, s", "error, s", "energy", "gradient, by norm", "worst radius")


def atoms_of(system: str) -> Atoms:
    """Load the atoms of a system with all parameters."""
    data = np.load(DATA / f"{system}.npz")
    return Atoms(
        positions=data["coordinates"], charges=data["charge"], lj_sigma=data["sigma"], lj_epsilon=data["epsilon"],
        gb_radii=data["obc_radius"], gb_scales=data["obc_scale"], bonds=data["bonds"],
    )  # fmt: skip


def best_of(plan: Energy, runs: int) -> tuple[EnergyResult, float]:
    """Return a result, and the lowest wall time of a later evaluation, without the measurement of the error."""
    result, best = plan.evaluate(), np.inf
    for _ in range(runs):
        start = time.perf_counter()
        result = plan.evaluate()
        best = min(best, time.perf_counter() - start - result.seconds.get("error", 0.0))
    return result, best


def kernels(plan: Energy) -> str:
    """Return milliseconds of each kernel, from another evaluation of the last positions."""
    with plan._lent(1) as evaluator:
        assert isinstance(evaluator, Pipeline)
        passes = evaluator.passes
        queue = passes.queue.new_queue(True)
        passes.launch(queue, 1)
        queue.finish()
        each = zip(passes.launches, queue.events, strict=True)
        return ", ".join(f"{kept.kernel.name} {1e3 * seconds_of(event):,.0f}" for kept, event in each)


def main() -> None:
    device, systems, *rest = sys.argv[1:]
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for system in systems.split(","):
        atoms = atoms_of(system)
        exact = Energy(atoms, born="pairs", precision="float64", device=device).evaluate()
        assert exact.gradient is not None
        for born in ("pairs", "tree"):
            plan = Energy(atoms, born=born, device=device)
            result, seconds = best_of(plan, int(rest[0]) if rest else 3)
            assert result.gradient is not None
            apart = np.linalg.norm(result.gradient - exact.gradient) / np.linalg.norm(exact.gradient)
            worst = np.abs(result.born_radii / exact.born_radii - 1).max()
            cells = (
                system, f"{len(atoms):,}", born, f"{seconds:.3f}", f"{result.seconds.get('error', 0.0):.3f}",
                f"{abs(result.total / exact.total - 1):.1e}", f"{apart:.1e}", f"{worst:.1e}",
            )  # fmt: skip
            print(f"| {' | '.join(cells)} |\n  ({kernels(plan)})", flush=True)


if __name__ == "__main__":
    main()
