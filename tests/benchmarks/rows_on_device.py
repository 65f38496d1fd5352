"""Evaluation of structures that stay on the device, compared with batches transferred from the host.

python tests/benchmarks/rows_on_device.py [--device D] [--rows 4096,512] prints, for peptide and protein, microseconds
per structure: for an ensemble whose rows stay on the device, for calls of evaluate_batch, and for rows that are
written, evaluated and read as in such a call.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from pele_ocl import Energy, Ensemble, read
from pele_ocl.common.installation import shipped

ROUNDS, REPEATS = 7, 10


def fastest(call: Callable[[], object]) -> float:
    """Return the time of the fastest of some calls in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one line per molecule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--rows", default="4096,512")
    options = parser.parse_args()
    for name, count in zip(("hexapeptide", "ubiquitin"), map(int, options.rows.split(",")), strict=True):
        atoms = read(shipped("data") / "structures" / f"{name}.pdb")
        places = atoms.positions + 0.02 * np.random.default_rng(0).normal(size=(count, len(atoms), 3))
        plan, ensemble = Energy(atoms, device=options.device), Ensemble(atoms, count, device=options.device)
        ensemble.positions[:] = places

        def evaluations(ensemble: Ensemble = ensemble) -> None:
            for _ in range(REPEATS):
                ensemble.evaluate()
            ensemble.finish()

        evaluations()
        plan.evaluate_batch(places)

        def through(ensemble: Ensemble = ensemble, places: np.ndarray = places) -> None:
            ensemble.positions[:] = places
            _ = ensemble.evaluate().energies, ensemble.gradients[:]

        through()
        stays = fastest(evaluations) / REPEATS
        batch = fastest(lambda plan=plan, places=places: plan.evaluate_batch(places))
        reading = fastest(lambda ensemble=ensemble: ensemble.positions[:])
        written = fastest(through)
        each = [f"{1e6 * seconds / count:.2f}" for seconds in (stays, batch, written, reading)]
        print(
            f"{name}, {len(atoms):,} atoms, {count:,} rows on {plan.device}: {each[0]} us per unchanged row, "
            f"{each[1]} in a batch, {each[2]} written, evaluated and read, {each[3]} to read its positions",
            flush=True,
        )


if __name__ == "__main__":
    main()
