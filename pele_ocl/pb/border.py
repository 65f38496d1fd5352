"""Potentials at the border of a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import SMALL, PBModel, PBProblem, PBSolute
from .launching import Launching


def border_of(shape: tuple[int, int, int]) -> NDArray[np.int32]:
    """Find the nodes of a grid's six faces, (m, 3) i, j, k, each once."""
    found, (nx, ny, nz) = [], shape
    ends = [(0, n - 1) for n in shape]
    for x, y, z in (
        (range(nx), range(ny), ends[2]), (range(nx), ends[1], range(1, nz - 1)),
        (ends[0], range(1, ny - 1), range(1, nz - 1)),
    ):  # fmt: skip
        k, j, i = np.meshgrid(np.array(z, np.int32), np.array(y, np.int32), np.array(x, np.int32), indexing="ij")
        found.append(np.stack([i.ravel(), j.ravel(), k.ravel()], axis=1))
    return np.concatenate(found)


def border_values(
    launching: Launching, problem: PBProblem, grid: Grid, parent: tuple[Grid, Floats] | None, precise: bool = True
) -> tuple[NDArray[np.int32], Floats]:
    """Find the nodes of the border, (m, 3) i, j, k, and the potential that is known there, (m,) kT/e.

    parent : the grid around this one, and the potential on it; None for the outermost
    precise : whether to sum in float64
    """
    nodes, model = border_of(grid.shape), problem.model
    points = grid.origin + nodes * grid.spacing
    if parent is not None:
        return nodes, interpolated(parent[1], parent[0], points)
    if model.boundary == "sdh":
        return nodes, of_molecule(problem.solute, model, points)
    if model.boundary == "mdh":
        factor, kappa = model.boundary_factor / model.solvent_dielectric, model.kappa if model.kappa > SMALL else 0.0
        return nodes, of_spheres(launching, points, problem.solute, factor, kappa, precise)
    return nodes[:0], np.zeros(0)


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


def of_spheres(
    launching: Launching, points: Floats, solute: PBSolute, factor: float, kappa: float = 0.0, precise: bool = True
) -> Floats:
    """Potential of every atom as a sphere in salt water, (m,) kT/e.

    points : (m, 3) A; factor : of a charge over its distance, kT/e A; kappa : inverse Debye length, 1/A
    precise : in float64 where the device has it, else in float32
    """
    queue, wide = launching.queue, launching.wide if precise else launching.queue.dtype
    width, count = queue.device.vector_width(str(wide)), len(points)
    n_vectors = max(1, -(-count // width))
    middle = points.mean(axis=0) if count else np.zeros(3)
    padded = np.zeros((n_vectors * width, 3))
    padded[:count] = points - middle
    charged = solute.charges != 0
    atoms = np.column_stack([solute.positions - middle, solute.radii])[charged]
    found = queue.empty(len(padded), wide)
    launching.over_list(
        "pb/potential.cl", "add_spheres", n_vectors, {}, precision=str(wide), width=width, n_vectors=n_vectors,
        points_x=queue.upload(padded[:, 0], wide), points_y=queue.upload(padded[:, 1], wide),
        points_z=queue.upload(padded[:, 2], wide), n_atoms=len(atoms), atoms=queue.upload(atoms, wide),
        charges=queue.upload(factor * solute.charges[charged], wide), kappa=kappa, potential=found,
    )()  # fmt: skip
    return queue.download(found, count, wide).astype(np.float64)


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
