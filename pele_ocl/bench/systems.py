"""Shipped structures with their force field, and spheres of atoms with the density of a protein."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.installation import shipped
from ..reading import read

# Similar to the systems in the thesis: 96, 1,231, 4,358, 14,132 and 31,314 atoms.
SYSTEMS = {
    "hexapeptide": "hexapeptide.pdb",
    "ubiquitin": "ubiquitin.pdb",
    "src3": "src3.pdb.gz",
    "enolase_dimer": "enolase_dimer.pdb.gz",
    "ruvab": "ruvab.pdb.gz",
}

SEED = 1
SPACING = 2.15  # A, spacing of a cubic lattice with the density of a protein including hydrogens
SHAKE = 0.35  # A, largest displacement along each axis, so that atoms are at least 1.45 A apart


def load(name: str) -> Atoms:
    """Load a shipped structure with Amber99SB parameters, without bonded terms.

    Its energy has the same terms as NonbondedForce and GBSAOBCForce of OpenMM. Raises InputError for an unknown name.
    """
    if name not in SYSTEMS:
        raise InputError(f"unknown shipped structure {name!r}; choose {', '.join(SYSTEMS)}")
    return replace(read(shipped("data") / "structures" / SYSTEMS[name]), bonded=None)


def ball_of_atoms(n_atoms: int) -> Atoms:
    """Return atoms in a sphere with the density of a protein, random parameters in a typical range, and no bonds."""
    rng = np.random.default_rng(SEED)
    edge = int(np.ceil((2 * n_atoms) ** (1 / 3))) + 2  # a ball fills half of its cube
    axis = SPACING * (np.arange(edge) - (edge - 1) / 2)
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    inner = np.argsort((lattice**2).sum(axis=1), kind="stable")[:n_atoms]
    charges = rng.normal(0, 0.3, n_atoms)
    return Atoms(
        positions=lattice[inner] + rng.uniform(-SHAKE, SHAKE, (n_atoms, 3)),
        charges=charges - charges.mean(),
        lj_sigma=rng.uniform(1.5, 3.4, n_atoms),
        lj_epsilon=rng.uniform(0.01, 0.2, n_atoms),
        gb_radii=rng.uniform(1.2, 1.9, n_atoms),
        gb_scales=rng.uniform(0.72, 0.85, n_atoms),
    )
