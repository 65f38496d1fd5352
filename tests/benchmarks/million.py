"""A million atoms from a PDBx/mmCIF file to energies: seconds of each step.

python tests/benchmarks/million.py DEVICE FILE.cif

The file is created if it does not exist: 32 copies of the included RuvAB, 967,000 atoms in total. The first
evaluation includes compiling kernels and allocating buffers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import gemmi
import numpy as np

from pele_ocl import Solvent, read
from pele_ocl.common.installation import shipped

T = TypeVar("T")
COPIES, APART = (4, 4, 2), 220.0  # A


def make(path: Path) -> None:
    """Write the copies, with numbered chain names."""
    one = gemmi.read_structure(str(shipped("data") / "structures" / "ruvab.pdb.gz"))[0]
    every, model = gemmi.Structure(), gemmi.Model("1")
    for number, place in enumerate(np.ndindex(COPIES)):
        shift = gemmi.Position(*(APART * np.array(place, float)))
        for chain in one:
            copy = chain.clone()
            copy.name = f"{chain.name}{number}"
            for residue in copy:
                for atom in residue:
                    atom.pos += shift
            model.add_chain(copy)
    every.add_model(model)
    every.setup_entities()
    every.assign_serial_numbers()
    every.make_mmcif_document().write_file(str(path))


def timed(what: str, work: Callable[[], T]) -> T:
    """Run the work, print its time in seconds, and return its result."""
    start = time.perf_counter()
    result = work()
    print(f"| {what} | {time.perf_counter() - start:.2f} |", flush=True)
    return result


def main() -> None:
    device, path = sys.argv[1], Path(sys.argv[2])
    if not path.exists():
        make(path)
    print("| step | s |\n|---|---|")
    atoms = timed(f"file of {path.stat().st_size >> 20} MiB to atoms with parameters", lambda: read(path))
    for what, energy in (("only Born radii", False), ("with energies", True)):
        plan = timed(f"{what}: plan for {len(atoms):,} atoms", lambda e=energy: Solvent(atoms, device=device, energy=e))
        timed("first evaluation", plan.evaluate)
        timed("later ones", plan.evaluate)


if __name__ == "__main__":
    main()
