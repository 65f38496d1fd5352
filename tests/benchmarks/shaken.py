"""Minimization from noisy starts: number of strained atoms at the end, with and without restoring bonds first.

python tests/benchmarks/shaken.py [--system src3] [--starts 60] [--noise 0.3] [--tolerance 10] [--device NAME]

minimizes the same starts with both methods, to --tolerance kJ/mol/nm, and counts the atoms at the vertex of an angle
with more than 15 kcal/mol at the end.
"""

from __future__ import annotations

import argparse

import numpy as np
from timing_tables.minimize import minimizer_of, starts_of

import pele_ocl
from pele_ocl import Atoms
from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.common.installation import shipped

STRAINED = 15.0  # kcal/mol


def strained(atoms: Atoms) -> list[str]:
    """Return the atoms at which an angle deviates strongly from its equilibrium value."""
    assert atoms.bonded is not None
    angles = atoms.bonded.angles
    i, j, k = (atoms.positions[column] for column in angles.atoms.T)
    cosines = ((i - j) * (k - j)).sum(axis=1) / np.linalg.norm(i - j, axis=1) / np.linalg.norm(k - j, axis=1)
    stiffness, best = angles.parameters.T
    energies = stiffness * (np.arccos(np.clip(cosines, -1, 1)) - best) ** 2
    return [atoms.describe(int(atom)) for atom in np.unique(angles.atoms[energies > STRAINED, 1])]


def main() -> None:
    """Read the options and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default="src3", choices=SYSTEMS)
    parser.add_argument("--starts", default=60, type=int)
    parser.add_argument("--noise", default=0.3, type=float, help="A")
    parser.add_argument("--tolerance", default=10.0, type=float, help="kJ/mol/nm")
    parser.add_argument("--device")
    options = parser.parse_args()
    atoms = pele_ocl.read(shipped("data") / "structures" / SYSTEMS[options.system])
    starts = starts_of(atoms, options.noise, options.starts)
    plan = minimizer_of(atoms, "lbfgs", options.tolerance, "float32", options.device)
    ways = {"left": None, "restored": plan._lengths}
    for bonds, lengths in ways.items():
        plan._lengths = lengths
        batch = plan.minimize_batch(np.stack(starts), errors="record")
        results = [result for _, result in batch.good]
        places = [strained(result.atoms) for result in results]
        energies = [result.energy_after.total for result in results]
        print(
            f"{options.system}, {options.noise} A of noise, bonds {bonds}: {sum(map(len, places))} strained places in "
            f"{sum(map(bool, places))} of {len(places)} structures, {len(batch.errors)} failed; "
            f"{np.mean(energies):.1f} kcal/mol on average, {np.median(energies):.1f} median, "
            f"{np.mean([result.evaluations for result in results]):.0f} evaluations; {plan.energy.device}",
            flush=True,
        )
        for reason in batch.errors.values():
            print(f"  {reason}")


if __name__ == "__main__":
    main()
