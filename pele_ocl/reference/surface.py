"""Reference implementation of LCPO surface areas; equation numbers of docs/theory/surface.md."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.lcpo import lcpo_parameters
from ..gb_models.solvent_model import SolventModel


def surface_areas(atoms: Atoms, model: SolventModel) -> tuple[Floats, Floats]:
    """Return surface areas of atoms, (n,) A^2, and the gradient of their sum, (n, 3) A. Memory scales as n^2."""
    radii, *p = lcpo_parameters(atoms, model.lcpo_unknown, model.lcpo_rule).T
    heavy = np.flatnonzero(radii)
    reach = radii[heavy] + model.probe_radius
    p1, p2, p3, p4 = (values[heavy] for values in p)
    d = atoms.positions[heavy, None] - atoms.positions[heavy]
    r = np.linalg.norm(d, axis=2)
    near = (r < reach[:, None] + reach) & ~np.eye(len(heavy), dtype=bool)
    r[~near] = 1.0
    squares = reach[:, None] ** 2 - reach**2
    # Eq. 2: area of the row's sphere buried by the column's sphere, and its derivative.
    buried = np.where(near, 2 * np.pi * reach[:, None] * (reach[:, None] - r / 2 - squares / (2 * r)), 0.0)
    slope = np.where(near, np.pi * reach[:, None] * (squares / r**2 - 1), 0.0)
    met = near * (near.astype(float) @ buried.T)  # area of the column's sphere buried by common neighbours
    # Eq. 1.
    areas = 4 * np.pi * p1 * reach**2 + p2 * buried.sum(axis=1) + p3 * met.sum(axis=1) + p4 * (buried * met).sum(axis=1)
    # Eq. 3.
    weights = p2[:, None] + p4[:, None] * met + (p3[:, None] * near + p4[:, None] * buried).T @ near
    pull = (weights * slope + (weights * slope).T) / r
    found, gradient = np.zeros(len(atoms)), np.zeros((len(atoms), 3))
    found[heavy], gradient[heavy] = areas, np.einsum("ij,ijk->ik", pull, d)
    return found, gradient
