"""Potentials at the border of a grid."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import SMALL, PBModel, PBProblem, PBSolute
from .colours import Colours
from .launching import Launching, add_at

if TYPE_CHECKING:
    from ..opencl.memory import Buffer


@lru_cache(maxsize=4)
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


def count_border(shape: tuple[int, int, int]) -> int:
    """Count the nodes of a grid's six faces."""
    return int(np.prod(shape) - np.prod(np.array(shape) - 2))


def list_border(launching: Launching, shape: tuple[int, int, int], precise: bool = True) -> Buffer:
    """Find the nodes of a grid's six faces on the device, (m, 3) i, j, k in the order of border_of.

    precise : of add_spheres, whose program has the kernel
    """
    (nx, ny, nz), count = shape, count_border(shape)
    nodes = launching.queue.empty(3 * count, np.int32)
    launching.over_list(
        "pb/potential.cl", "list_border", count, {}, **_numbers(launching, precise), nx=nx, ny=ny, nz=nz,
        n_nodes=count, nodes=nodes,
    )()  # fmt: skip
    return nodes


def _numbers(launching: Launching, precise: bool) -> dict[str, Any]:
    """Precision and width of vectors of potential.cl."""
    kind = str(launching.wide if precise else launching.queue.dtype)
    return {"precision": kind, "width": launching.queue.device.vector_width(kind)}


def add_border(
    launching: Launching, problem: PBProblem, grid: Grid, parent: tuple[Grid, Floats] | None, colours: Colours,
    defines: dict[str, int], array: Buffer, precise: bool = True,
) -> None:  # fmt: skip
    """Add the potential that is known at the border, kT/e, to an array of wide numbers.

    parent : the grid around this one, and the potential on it; None for the outermost
    defines : macros of Coefficients
    precise : whether to sum in float64
    """
    model = problem.model
    if parent is None and model.boundary == "mdh":
        factor, kappa = model.boundary_factor / model.solvent_dielectric, model.kappa if model.kappa > SMALL else 0.0
        own = launching.large(("border", grid.shape), lambda: list_border(launching, grid.shape, precise))
        add_spheres(
            launching, problem.solute, grid, colours, count_border(grid.shape), own, factor, array, kappa, precise
        )  # fmt: skip
    elif parent is not None or model.boundary == "sdh":
        nodes = border_of(grid.shape)
        points = grid.origin + nodes * grid.spacing
        known = of_molecule(problem.solute, model, points) if parent is None else interpolated(
            parent[1], parent[0], points
        )  # fmt: skip
        add_at(launching, colours, defines, nodes, known, array)


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


def between_nodes(values: Floats, grid: Grid, points: Floats) -> Floats:
    """Values of a grid at points, (m,), NaN for the ones that are not on it."""
    inside = ((points >= grid.origin) & (points <= grid.last)).all(axis=1)
    found = np.full(len(points), np.nan)
    found[inside] = interpolated(values, grid, points[inside])
    return found


def add_spheres(
    launching: Launching, solute: PBSolute, grid: Grid, colours: Colours, count: int, nodes: Buffer, factor: float,
    array: Buffer, kappa: float = 0.0, precise: bool = True,
) -> None:  # fmt: skip
    """Add the potential of atoms as spheres in salt water, kT/e, at nodes to an array of wide numbers.

    count : of the nodes; nodes : (count, 3) i, j, k, each once
    factor : of a charge over its distance, kT/e A; kappa : inverse Debye length, 1/A
    precise : in float64 where the device has it, else in float32
    """
    if not count:
        return
    queue, numbers, middle = launching.queue, _numbers(launching, precise), (grid.origin + grid.last) / 2
    wide, width = numbers["precision"], numbers["width"]
    n_vectors = -(-count // width)
    charged = solute.charges != 0
    atoms = np.column_stack([solute.positions - middle, solute.radii])[charged]
    x, y, z, found = (queue.empty(n_vectors * width, wide) for _ in range(4))
    points = {"points_x": x, "points_y": y, "points_z": z}

    def over(kernel: str, items: int, **values: Any) -> None:
        launching.over_list("pb/potential.cl", kernel, items, {}, **numbers, **values)()

    over(
        "place_nodes", n_vectors * width, n_points=n_vectors * width, n_nodes=count, nodes=nodes,
        place=launching.vectors(np.array([grid.origin - middle, grid.spacing])), **points,
    )  # fmt: skip
    over(
        "sum_spheres", n_vectors, n_vectors=n_vectors, **points, n_atoms=len(atoms), atoms=queue.upload(atoms, wide),
        charges=queue.upload(factor * solute.charges[charged], wide), kappa=kappa, potential=found,
    )  # fmt: skip
    over("add_to_nodes", count, grid=colours, n_nodes=count, nodes=nodes, values=found, array=array)


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
