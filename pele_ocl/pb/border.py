"""Boundary values on the faces of a grid."""

from __future__ import annotations

from collections.abc import Sequence
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

VECTORS_OF_GPUS = 4  # points per work-item, see cl/pb/potential.cl


@lru_cache(maxsize=4)
def border_of(shape: tuple[int, int, int]) -> NDArray[np.int32]:
    """Return the nodes on the six faces of a grid, (m, 3) i, j, k, without duplicates."""
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
    """Count the nodes on the six faces of a grid."""
    return int(np.prod(shape) - np.prod(np.array(shape) - 2))


def list_border(launching: Launching, shape: tuple[int, int, int], precise: bool = True) -> Buffer:
    """List the nodes on the six faces of a grid on the device, (m, 3) i, j, k in the order of border_of.

    precise : as in add_spheres, whose program contains the kernel
    """
    (nx, ny, nz), count = shape, count_border(shape)
    nodes = launching.queue.empty(3 * count, np.int32)
    launching.over_list(
        "pb/potential.cl", "list_border", count, {}, **_numbers(launching, precise), nx=nx, ny=ny, nz=nz,
        n_nodes=count, nodes=nodes,
    )()  # fmt: skip
    return nodes


def _numbers(launching: Launching, precise: bool) -> dict[str, Any]:
    """Return the precision and vector width for potential.cl."""
    kind = str(launching.wide if precise else launching.queue.dtype)
    return {"precision": kind, "width": launching.queue.device.vector_width(kind)}


def add_border(
    launching: Launching, problems: Sequence[PBProblem], grids: Sequence[Grid],
    parents: Sequence[tuple[Grid, Floats]] | None, colours: Colours, defines: dict[str, int], array: Buffer,
    precise: bool = True,
) -> None:  # fmt: skip
    """Add boundary values, kT/e, to an array of wide numbers.

    problems : with the same model; grids : of the problems, with the same shape and spacing
    parents : for each grid, the coarser grid around it and its potential; None for the outermost grids
    defines : macros of Coefficients
    precise : whether to sum in float64
    """
    model, shape = problems[0].model, grids[0].shape
    if parents is None and model.boundary == "mdh":
        factor, kappa = model.boundary_factor / model.solvent_dielectric, model.kappa if model.kappa > SMALL else 0.0
        nodes = launching.large(("border", shape), lambda: list_border(launching, shape, precise))
        ranges = [(0, count_border(shape))] * len(grids)
        solutes = [each.solute for each in problems]
        add_spheres(launching, solutes, grids, colours, ranges, nodes, factor, array, kappa, precise)
    elif parents is not None or model.boundary == "sdh":
        nodes_of_border = border_of(shape)
        for row, (problem, grid) in enumerate(zip(problems, grids, strict=True)):
            points = grid.origin + nodes_of_border * grid.spacing
            known = of_molecule(problem.solute, model, points) if parents is None else interpolated(
                parents[row][1], parents[row][0], points
            )  # fmt: skip
            add_at(launching.alone, colours.of_row(row), defines, nodes_of_border, known, array)


def interpolated(values: Floats, grid: Grid, points: Floats) -> Floats:
    """Interpolate grid values linearly at points on the grid, (m,), from the eight nodes around each."""
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
    """Interpolate grid values at points, (m,); NaN for points outside of the grid."""
    inside = ((points >= grid.origin) & (points <= grid.last)).all(axis=1)
    found = np.full(len(points), np.nan)
    found[inside] = interpolated(values, grid, points[inside])
    return found


def add_spheres(
    launching: Launching, solutes: Sequence[PBSolute], grids: Sequence[Grid], colours: Colours,
    ranges: Sequence[tuple[int, int]], nodes: Buffer, factor: float, array: Buffer, kappa: float = 0.0,
    precise: bool = True,
) -> None:  # fmt: skip
    """Add the potential of atoms, as spheres in salt water, kT/e, at nodes of an array of wide numbers.

    solutes, grids : for each row
    ranges : first node and number of nodes of each row; nodes : (m, 3) i, j, k, without duplicates in a row
    factor : potential of a unit charge times the distance, kT/e A; kappa : inverse Debye length, 1/A
    precise : whether to sum in float64 if the device supports it, else in float32
    """
    most = max(count for _, count in ranges)
    if not most:
        return
    queue, numbers = launching.queue, _numbers(launching, precise)
    wide, width = numbers["precision"], numbers["width"]
    n_vectors = [-(-count // width) for _, count in ranges]
    firsts = np.cumsum([0, *n_vectors]).tolist()
    atoms, charges, places = [], [], []
    for solute, grid in zip(solutes, grids, strict=True):
        middle, charged = (grid.origin + grid.last) / 2, np.flatnonzero(solute.charges)
        spheres = np.empty((len(charged), 4), wide)
        spheres[:, :3] = solute.positions[charged] - middle
        spheres[:, 3] = solute.radii[charged]
        atoms.append(spheres)
        charges.append(factor * solute.charges[charged])
        places += [grid.origin - middle, grid.spacing]
    x, y, z, found = (queue.empty(firsts[-1] * width, wide) for _ in range(4))
    ranges_on_device = queue.send(
        [(*nodes_of, *vectors_of) for nodes_of, *vectors_of in zip(ranges, firsts[:-1], n_vectors, strict=True)],
        np.int32,
    )
    points = {"points_x": x, "points_y": y, "points_z": z}

    def over(kernel: str, items: int, **values: Any) -> None:
        launching.over_lists("pb/potential.cl", kernel, items, {}, **numbers, ranges=ranges_on_device, **values)()

    over("place_nodes", max(n_vectors) * width, nodes=nodes, places=launching.vectors(places), **points)
    over(
        "sum_spheres", -(-max(n_vectors) // (VECTORS_OF_GPUS if width == 1 else 1)), **points,
        first_atoms=queue.send(np.cumsum([0, *map(len, charges)]), np.int32),
        atoms=queue.send(np.concatenate(atoms), wide), charges=queue.send(np.concatenate(charges), wide),
        kappa=kappa, potential=found,
    )  # fmt: skip
    over("add_to_nodes", most, grid=colours, nodes=nodes, values=found, array=array)


def of_molecule(solute: PBSolute, model: PBModel, points: Floats) -> Floats:
    """Return the potential of one sphere with the charge, dipole and quadrupole of the molecule, (m,) kT/e."""
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
