"""Processor time of an evaluation with PELE's default solvent, and of one with fixed Born radii.

python tests/benchmarks/sgb.py [COMPLEX.pdb [--pele-data DIR]...] [--device D] [--evaluations 3]

Energy and gradient, float32 and float64, after a first evaluation. Without a file, ubiquitin is used, with
GB radii for the spheres.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import pele_ocl
from pele_ocl import Atoms, Ensemble, ForceField, SolventModel
from pele_ocl.common.installation import shipped


def built_in() -> Atoms:
    """Return ubiquitin with parameters of each kind."""
    atoms = pele_ocl.read(shipped("data") / "structures" / "ubiquitin.pdb", ForceField.load())
    assert atoms.gb_radii is not None
    radii, ones = atoms.gb_radii, np.ones(len(atoms))
    return replace(atoms, sgb=np.column_stack([radii, radii, 0.01 * ones, -0.5 * ones]))


def seconds(ensemble: Ensemble, count: int, keep_radii: bool) -> float:
    """Return the processor time of an evaluation, s over all cores."""
    begin = time.process_time()
    for _ in range(count):
        ensemble.evaluate(keep_radii=keep_radii)
        ensemble.energies  # noqa: B018  waits for them
    return (time.process_time() - begin) / count


def main() -> None:
    """Print one line per precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("complex", nargs="?")
    parser.add_argument("--pele-data", action="append", default=[], type=Path)
    parser.add_argument("--device")
    parser.add_argument("--evaluations", type=int, default=3)
    options = parser.parse_args()
    if options.complex:
        data = dict(pele_data=options.pele_data, allow_missing_terminals=True, guess_radii=True)
        atoms = pele_ocl.read(Path(options.complex), ForceField.load("OPLS2005", **data))
    else:
        atoms = built_in()
    model = SolventModel.like("pele", gb="vdgbnp", ionic_strength=0.15)
    for precision in ("float32", "float64"):
        ensemble = Ensemble(atoms, model=model, fixed_radii=True, precision=precision, device=options.device)
        ensemble.evaluate()
        total = float(ensemble.energies[0])
        ensemble.evaluate(keep_radii=True)
        whole, held = (seconds(ensemble, options.evaluations, keeps) for keeps in (False, True))
        print(
            f"{len(atoms):,} atoms, {precision}, {ensemble.device}: {whole:.3f} s per evaluation, {held:.3f} s with "
            f"fixed radii; {total:.2f} kcal/mol"
        )


if __name__ == "__main__":
    main()
