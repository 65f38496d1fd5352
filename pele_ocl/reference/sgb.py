"""Reference implementation of PELE's SGB models; equation numbers of docs/theory/sgb.md."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..gb_models.solvent_model import SolventModel
from ..gb_models.surface import sgb_figures, unit_points

MIDDLE, STEEPNESS, LENGTH = 0.4, 12.0, 1.5  # parameters b, c and a (A) of the SGB/NP switching function


def exposed_points(positions: Floats, radii: Floats) -> NDArray[np.bool_]:
    """Eq. 1: mask of exposed points on each atom's sphere, (n, points); none for atoms with radius 0.

    positions (n, 3) A, radii (n,) A
    """
    units = unit_points()
    exposed = np.zeros((len(radii), len(units)), bool)
    for i, (centre, radius) in enumerate(zip(positions, radii, strict=True)):
        if radius <= 0:
            continue
        d = positions - centre
        r2 = (d * d).sum(axis=1)
        near = np.flatnonzero((r2 < (radius + radii) ** 2) & (radii > 0) & (np.arange(len(radii)) != i))
        cosines = units @ (d[near] / radius).T
        exposed[i] = (cosines <= 0.5 * (1 + (r2[near] - radii[near] ** 2) / radius**2)).all(axis=1)
    return exposed


def surface_born_radii(atoms: Atoms, model: SolventModel) -> Floats:
    """Eq. 2: Born radii, (n,) A."""
    radii, units = sgb_figures(atoms, model.gb)[:, 0], unit_points()
    exposed = exposed_points(atoms.positions, radii)
    integrals = np.zeros(len(atoms))
    for centre, radius, points in zip(atoms.positions, radii, exposed, strict=True):
        d = centre - atoms.positions
        along = d @ units[points].T
        r2 = (d * d).sum(axis=1)[:, None] + radius**2 + 2 * radius * along
        integrals += radius**2 / len(units) * ((along + radius) / r2**2).sum(axis=1)
    born: Floats = 1 / integrals
    return born


def areas(atoms: Atoms, model: SolventModel) -> Floats:
    """Return the solvent-accessible areas of atoms, (n,) A^2."""
    bare = sgb_figures(atoms, model.gb)[:, 1]
    radii = np.where(bare > 0, bare + model.probe_radius, 0.0)
    found: Floats = 4 * np.pi * radii**2 * exposed_points(atoms.positions, radii).mean(axis=1)
    return found


def nonpolar_sgb(atoms: Atoms, born: Floats, model: SolventModel) -> Floats:
    """Eq. 4: nonpolar energy of each atom, (n,) kcal/mol."""
    _, _, gamma, alpha = sgb_figures(atoms, model.gb).T
    switch = 1 / (1 + np.exp(-STEEPNESS * (LENGTH / born - MIDDLE)))
    energy: Floats = gamma * areas(atoms, model) + alpha * switch
    return energy
