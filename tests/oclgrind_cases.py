"""A small case of every kernel, to run under `oclgrind --data-races`; tests/test_oclgrind.py reads the report."""

from __future__ import annotations

from conftest import random_atoms

from pele_ocl import SolventModel, solvent
from pele_ocl.opencl.device import get_device
from pele_ocl.opencl.kernels import Run
from pele_ocl.solvent import VARIANTS
from pele_ocl.solvent.layout import Layout
from pele_ocl.solvent.variants import System


def main() -> None:
    device = get_device("oclgrind")
    atoms = random_atoms(37)
    for precision in ("float32", "float64"):
        for variant in VARIANTS:
            solvent(atoms, variant=variant, precision=precision, device=device)
        solvent(atoms, precision=precision, device=device, model=SolventModel(ionic_strength=0.1))
        vectors = System.of(atoms, SolventModel(), Layout(4, 2, 16, (1, 1), 2))
        VARIANTS["tiled"].run(Run(device, precision), vectors)
    print("all cases ran")


if __name__ == "__main__":
    main()
