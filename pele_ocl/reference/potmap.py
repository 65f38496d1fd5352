"""Reference implementation of potential maps; equations in docs/theory/potmap.md."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats
from ..grid import Grid
from ..potential_model import PotentialModel
from ..units import COULOMB_KCAL_A

# Distances held in memory at a time.
BLOCK = 4_000_000


def potential(r2: Floats, model: PotentialModel) -> Floats:
    """Return the potential of a unit charge, e/A, at squared distances r2 [A^2] of any shape, without dielectric."""
    r = np.sqrt(np.maximum(r2, model.min_distance**2))
    value: Floats = np.exp(-model.kappa * r) / (r * r if model.distance_dependent else r)
    if model.cutoff is not None:
        if model.smooth:
            value = value * np.maximum(1 - (r / model.cutoff) ** 2, 0) ** 2
        value = np.where(r2 < model.cutoff**2, value, 0.0)
    return value


def slope(r2: Floats, model: PotentialModel) -> Floats:
    """Return -(d potential / dr) / r in e/A^3; multiplied by the vector from charge to point, it is the field."""
    r = np.sqrt(np.maximum(r2, model.min_distance**2))
    power = 2 if model.distance_dependent else 1
    bare = np.exp(-model.kappa * r) / r**power
    value: Floats = bare * (power + model.kappa * r) / (r * r)
    if model.cutoff is not None:
        if model.smooth:
            share = np.maximum(1 - (r / model.cutoff) ** 2, 0)
            value = value * share**2 + bare * 4 * share / model.cutoff**2
        value = np.where(r2 < model.cutoff**2, value, 0.0)
    outside: Floats = np.where(r2 < model.min_distance**2, 0.0, value)
    return outside


def potmap(atoms: Atoms, grid: Grid, model: PotentialModel | None = None) -> Floats:
    """Compute the electrostatic potential on a grid, (nz, ny, nx) in kcal/mol/e, at a cost of atoms times points."""
    values: Floats = _summed(atoms, grid, model or PotentialModel(), False)[0]
    return values


def field(atoms: Atoms, grid: Grid, model: PotentialModel | None = None) -> Floats:
    """Compute the electric field, the negative gradient of the potential: (3, nz, ny, nx) in kcal/mol/e/A."""
    components: Floats = _summed(atoms, grid, model or PotentialModel(), True)[1:]
    return components


def _summed(atoms: Atoms, grid: Grid, model: PotentialModel, with_field: bool) -> Floats:
    """Return the potential and, if requested, the three components of the field, (1 or 4, nz, ny, nx)."""
    # Relative to the grid's origin, to avoid a loss of digits far from zero.
    x, y, z = (h * np.arange(n) for h, n in zip(grid.spacing, grid.shape, strict=True))
    points = np.stack(np.meshgrid(z, y, x, indexing="ij")[::-1], axis=-1).reshape(-1, 3)
    positions = atoms.positions - grid.origin
    sums = np.zeros((4 if with_field else 1, len(points)))
    step = max(1, BLOCK // len(atoms))
    with np.errstate(divide="ignore"):
        for first in range(0, len(points), step):
            away = points[first : first + step, None] - positions
            r2 = np.einsum("pak,pak->pa", away, away)
            sums[0, first : first + step] = potential(r2, model) @ atoms.charges
            if with_field:
                weights = slope(r2, model) * atoms.charges
                sums[1:, first : first + step] = np.einsum("pa,pak->kp", weights, away)
    sums *= COULOMB_KCAL_A / model.dielectric
    return sums.reshape(-1, *grid.shape[::-1])
