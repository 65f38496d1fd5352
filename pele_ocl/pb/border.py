"""Potentials at the border of a grid."""

from __future__ import annotations

import numpy as np

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import SMALL, PBModel, PBProblem, PBSolute
from .launching import Launching


def border_of(shape: tuple[int, int, int]) -> tuple[Floats, Floats, Floats]:
    """Indices z, y, x of the nodes of a grid's six faces, (m,) each."""
    border = np.ones(shape[::-1], np.bool_)
    border[1:-1, 1:-1, 1:-1] = False
    z, y, x = np.nonzero(border)
    return z, y, x


def with_border(launching: Launching, problem: PBProblem, grid: Grid, parent: tuple[Grid, Floats] | None) -> Floats:
    """Potential (nz, ny, nx) kT/e that is known at the border, and 0 inside.

    parent : the grid around this one, and the potential on it; None for the outermost
    """
    potential = np.zeros(grid.shape[::-1])
    nodes = border_of(grid.shape)
    points = grid.origin + np.stack(nodes[::-1], axis=1) * grid.spacing
    model = problem.model
    if parent is not None:
        potential[nodes] = interpolated(parent[1], parent[0], points)
    elif model.boundary == "sdh":
        potential[nodes] = of_molecule(problem.solute, model, points)
    elif model.boundary == "mdh":
        potential[nodes] = of_spheres(launching, problem.solute, model, points)
    return potential


def interpolated(values: Floats, grid: Grid, points: Floats) -> Floats:
    """Values of a grid at points on it, (m,), from the eight nodes around each."""
    place = (points - grid.origin) / grid.spacing
    last = np.array(grid.shape) - 1
    low = np.clip(np.floor(place), 0, last).astype(np.int64)
    high = np.clip(np.ceil(place), 0, last).astype(np.int64)
    share = place - low
    found = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        x, y, z = (np.where(up, high[:, a], low[:, a]) for a, up in enumerate(corner))
        weight = np.prod([share[:, a] if up else 1 - share[:, a] for a, up in enumerate(corner)], axis=0)
        found += weight * values[z, y, x]
    return found


def of_spheres(launching: Launching, solute: PBSolute, model: PBModel, points: Floats) -> Floats:
    """Potential of every atom as a sphere in salt water, (m,) kT/e."""
    run = launching.run
    factor = model.boundary_factor / model.solvent_dielectric
    found = run.empty(len(points), launching.wide)
    charged = solute.charges != 0
    launching.over_list(
        "pb/atoms.cl", "screened_spheres", len(points), {"CODED": 1, "SALTED": 0}, n_points=len(points),
        points=launching.vectors(points), n_atoms=int(charged.sum()),
        atoms=launching.vectors(np.column_stack([solute.positions, solute.radii])[charged]),
        charges=run.upload(factor * solute.charges[charged], launching.wide),
        kappa=model.kappa if model.kappa > SMALL else 0.0, potential=found,
    )()  # fmt: skip
    return run.download(found, len(points), launching.wide).astype(np.float64)


def of_molecule(solute: PBSolute, model: PBModel, points: Floats) -> Floats:
    """Potential of one sphere with the molecule's charge, dipole and quadrupole, (m,) kT/e."""
    kappa, apart = model.kappa, solute.positions - solute.middle
    radius = (np.sqrt((apart**2).sum(axis=1)) + solute.radii).max()
    charge, dipole = solute.charges.sum(), solute.charges @ apart
    moments = np.einsum("a,ai,aj", solute.charges, apart, apart)
    quadrupole = 0.5 * (moments - np.eye(3) * np.trace(moments) / 3)
    outside = points - solute.middle
    r = np.sqrt((outside**2).sum(axis=1))
    e = model.solvent_dielectric / model.solute_dielectric
    of_charge, of_dipole, of_quadrupole = (c / model.solvent_dielectric / r**n for c, n in ((1, 1), (-1, 3), (3, 5)))
    if kappa < SMALL:
        of_dipole, of_quadrupole = of_dipole * 3 * e / (1 + 2 * e), of_quadrupole * 5 * e / (2 + 3 * e)
    else:
        a, k = kappa * radius, kappa * r
        damping = np.exp(a - k)
        second = 1 + a + e * (2 + 2 * a + a * a)
        third = 6 + 6 * a + 2 * a * a + e * (9 + 9 * a + 4 * a * a + a**3)
        of_charge = of_charge * damping / (1 + a)
        of_dipole = of_dipole * 3 * e * damping * (1 + k) / second
        of_quadrupole = of_quadrupole * 5 * e * damping * (3 + 3 * k + k * k) / third
    stretch = np.einsum("pi,ij,pj->p", outside, quadrupole, outside)
    potential: Floats = model.boundary_factor * (
        charge * of_charge - (outside @ dipole) * of_dipole + stretch * of_quadrupole
    )
    return potential
