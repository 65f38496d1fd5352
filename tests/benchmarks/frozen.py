"""Evaluation time with full gradient if all atoms except those around a point are frozen.

python tests/benchmarks/frozen.py [SYSTEM [DEVICE]] freezes the atoms of an included structure, by default src3,
that are farther than some radius from the atom closest to its centre; positions and results stay on the device.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

import pele_ocl
from pele_ocl import Energy, SolventModel
from pele_ocl.common.installation import shipped

RADII = (None, 20.0, 12.0, 8.0)  # A; None where nothing is frozen
ROUNDS, TURN_SECONDS = 5, 0.3
MODELS = {"vacuum": SolventModel(gb="none"), "OBC2": SolventModel()}


def structure(name: str) -> Path:
    """Return the path of an included structure."""
    return next((shipped("data") / "structures").glob(f"{name}.pdb*"))


def seconds_of(plan: Energy) -> float:
    """Return the median time of an evaluation in seconds."""
    plan.repeat(3)
    start = time.perf_counter()
    plan.repeat(3)
    count = max(1, int(3 * TURN_SECONDS / (time.perf_counter() - start)))
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        plan.repeat(count)
        taken.append((time.perf_counter() - start) / count)
    return median(taken)


def main(name: str = "src3", device: str | None = None) -> None:
    """Print one line per model and radius."""
    atoms = pele_ocl.read(structure(name))
    away = np.linalg.norm(atoms.positions - atoms.positions.mean(axis=0), axis=1)
    away = np.linalg.norm(atoms.positions - atoms.positions[np.argmin(away)], axis=1)
    for label, model in MODELS.items():
        whole = 0.0
        for radius in RADII:
            frozen = None if radius is None else away > radius
            plan = Energy(atoms, frozen=frozen, model=model, device=device)
            plan.evaluate()
            seconds = seconds_of(plan)
            whole = whole or seconds
            moving = len(atoms) if frozen is None else int((~frozen).sum())
            print(
                f"{name} {len(atoms):,d} atoms, {label}: {moving:6,d} move, {1e3 * seconds:9.3f} ms, "
                f"{whole / seconds:.2f}x; {plan.variant} on {plan.device}",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
