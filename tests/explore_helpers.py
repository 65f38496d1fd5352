"""A small complex for explorers: a hexapeptide with trialanine as its ligand."""

from __future__ import annotations

from functools import cache

import numpy as np
from test_forcefield_bonded import STRUCTURES, joined_structures, read_structure

import pele_ocl
from pele_ocl import Atoms, ForceField


@cache
def small_complex() -> tuple[Atoms, np.ndarray]:
    """Return the complex, whose parts are 3 A apart, and the atoms of the ligand."""
    receptor, ligand = (read_structure(STRUCTURES / name) for name in ("hexapeptide.pdb", "trialanine.pdb"))
    atoms = ForceField.load().assign(joined_structures(receptor, ligand))
    n, x = len(receptor.positions), atoms.positions.copy()
    x[n:] += x[:n].mean(axis=0) - x[n:].mean(axis=0)
    while np.linalg.norm(x[:n, None] - x[None, n:], axis=2).min() < 3:
        x[n:] += (0.25, 0, 0)
    relaxed = pele_ocl.minimize(atoms.moved(x), tolerance=1.0).atoms
    return relaxed, np.arange(n, len(atoms))
