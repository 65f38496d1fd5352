"""Error by norm of multilevel summation by interpolant, order and lattice, for the included structures.

python tests/benchmarks/msm_accuracy.py [CUTOFF[,CUTOFF...]]

A map has 36^3 points over the molecule and 5 A around it; errors are those of float32 maps against direct sums in
float64.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

import numpy as np

from pele_ocl import Atoms, Grid, potmap
from pele_ocl.bench.systems import load
from pele_ocl.potmap.msm import plan
from pele_ocl.potmap.msm.plan import PRESETS, MsmPreset

SYSTEMS = "ubiquitin", "src3", "ruvab"
POINTS, PADDING = 36, 5.0
TEXT_BOOKS = (MsmPreset(0, 4, 2, 6.0), MsmPreset(0, 6, 3, 6.0))  # h = 2 A, a = 12 A, cubic and quintic


def grid_around(atoms: Atoms) -> Grid:
    """Return the points of a map."""
    low, high = atoms.positions.min(axis=0) - PADDING, atoms.positions.max(axis=0) + PADDING
    return Grid(low, (high - low) / (POINTS - 1), (POINTS,) * 3)


def error(atoms: Atoms, grid: Grid, exact: np.ndarray, preset: MsmPreset, cutoff: float) -> float:
    """Return the error by norm of a map with these parameters."""
    only = (MsmPreset(1e-5, preset.nodes, preset.order, preset.ratio),)
    with patch.object(plan, "PRESETS", only):
        with patch.object(plan, "CUTOFFS", (cutoff,)):
            values = potmap(atoms, grid, method="msm", accuracy=1e-5).map.values
    return float(np.linalg.norm(values - exact) / np.linalg.norm(exact))


def main() -> None:
    cutoffs = [float(text) for text in sys.argv[1].split(",")] if len(sys.argv) > 1 else [6.0, 12.0]
    cases = [(atoms, grid_around(atoms)) for atoms in map(load, SYSTEMS)]
    exact = [potmap(atoms, grid, precision="float64").map.values for atoms, grid in cases]
    print("| P | order | a/h | a, A | " + " | ".join(SYSTEMS) + " |\n" + "|---" * (4 + len(SYSTEMS)) + "|")
    for preset in (*TEXT_BOOKS, *PRESETS):
        for cutoff in cutoffs:
            errors = [error(*case, values, preset, cutoff) for case, values in zip(cases, exact, strict=True)]
            numbers = " | ".join(f"{each:.1e}" for each in errors)
            print(f"| {preset.nodes} | {preset.order} | {preset.ratio:g} | {cutoff:g} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
