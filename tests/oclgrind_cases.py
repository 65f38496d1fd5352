"""A small case of every kernel, to run under `oclgrind --data-races`; tests/test_oclgrind.py reads the report.

oclgrind --data-races python oclgrind_cases.py solvent|nonbond|naive|energy
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from conftest import random_atoms, random_pairs, without

from pele_ocl import SolventModel, solvent
from pele_ocl.energy import VARIANTS as ENERGY_VARIANTS
from pele_ocl.energy import Energy
from pele_ocl.energy import plan as energy_plan
from pele_ocl.nonbond import VARIANTS as NONBOND_VARIANTS
from pele_ocl.nonbond import nonbond
from pele_ocl.nonbond.index import prefix_sum
from pele_ocl.opencl.device import Device, get_device
from pele_ocl.opencl.kernels import Run
from pele_ocl.solvent import VARIANTS
from pele_ocl.solvent.layout import Layout
from pele_ocl.solvent.variants import System

PRECISIONS = ("float32", "float64")
SALT = SolventModel(ionic_strength=0.1)


def solvent_cases(device: Device) -> None:
    atoms = random_atoms(37)
    for precision in PRECISIONS:
        for variant in VARIANTS:
            solvent(atoms, variant=variant, precision=precision, device=device)
        solvent(atoms, precision=precision, device=device, model=SALT)
        for blocks in (False, True):
            vectors = System.of(atoms, SolventModel(), Layout(4, 2, 16, (1, 1), 2, blocks))
            VARIANTS["tiled"].run(Run(device, precision), vectors)


def nonbond_cases(device: Device) -> None:
    """With 600 pairs the sort takes two blocks; the scan gets its own case of several."""
    run = Run(device, "float32")
    prefix_sum(run, run.zeros(1100, np.int32), 1100)
    atoms, pairs = random_atoms(40), random_pairs(40, 600)
    radii = atoms.gb_radii
    variants = [name for name in NONBOND_VARIANTS if name != "naive"]
    if not device.has_float_atomics:
        variants.remove("atomic-native")
    for precision in PRECISIONS:
        for variant in variants:
            options = dict(variant=variant, precision=precision, device=device)
            nonbond(atoms, pairs, radii, model=SALT, **options)
            nonbond(atoms, without(pairs, "sigma2", "charge_products"), radii, **options)
            nonbond(atoms, pairs, solvent="vacuum", gradient=False, **options)


def naive_case(device: Device) -> None:
    nonbond(random_atoms(40), random_pairs(40, 600), solvent="vacuum", variant="naive", device=device)


def energy_cases(device: Device) -> None:
    """Several tiles, vectors of four and of one, batches, and every switch of the kernels."""
    atoms = random_atoms(70)
    chain = np.column_stack([np.arange(69), np.arange(1, 70)])
    atoms = replace(atoms, bonds=chain, positions=atoms.positions + np.linspace(0, 60, 70)[:, None])
    both = np.stack([atoms.positions, atoms.positions + 0.1])
    for layout in (energy_plan.Layout(4, 16, 4, 3), energy_plan.Layout(1, 64, 64, 2)):
        energy_plan.Layout.of = staticmethod(lambda *_, layout=layout: layout)
        for variant in ENERGY_VARIANTS:
            if variant == ("blocks" if layout.tile > 32 else "squares"):
                continue
            for precision in PRECISIONS:
                options = dict(variant=variant, precision=precision, device=device)
                Energy(atoms, **options).evaluate_batch(both)
                Energy(atoms, per_atom=variant != "squares", cutoff=9.0, model=SALT, **options).evaluate()
                Energy(atoms, gradient=False, one_four="exclude", **options).evaluate()
                Energy(atoms, fixed_radii=True, **options).evaluate()


CASES = {"energy": energy_cases, "solvent": solvent_cases, "nonbond": nonbond_cases, "naive": naive_case}

if __name__ == "__main__":
    CASES[sys.argv[1]](get_device("oclgrind"))
    print("all cases ran")
