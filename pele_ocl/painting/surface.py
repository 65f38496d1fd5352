"""Solvent-excluded molecular surface, defined by a rolling probe (Richards 1977).

The centre of the probe can be anywhere outside spheres with the radius of atom plus probe. The surface consists of the
points that are one probe radius inside the surface of this region. Both distances are computed on a grid: the first to
the atoms, the second to the vertices of the surface that limits the probe's centre.

Isosurfaces are extracted by naive surface nets (Gibson, MICCAI 1998, 888). Each cell crossed by the surface has one
vertex, the mean of the crossing points on its edges. Each crossed grid edge adds a quadrilateral between the four cells
around it, divided into two triangles. Unlike marching cubes, this needs no table of cases, and triangles have similar
sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import gemmi
import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays
from ..grid import Grid

_NONE = np.int64(2**63 - 1)


def nearest_ball(grid: Grid, centres: Floats, radii: Floats, reach: float) -> tuple[NDArray[np.float32], Ints]:
    """Compute the distance of each grid point to the nearest sphere, negative inside, and the index of this sphere.

    centres : (n, 3) A, at least max(radii) + reach + one spacing from the grid's border; radii : (n,) A, n > 0
    reach : largest distance considered, A

    Returns distances (nz, ny, nx) A and indices (nz, ny, nx), which are `reach` and -1 without a sphere nearby. The
    cost is n times the number of points in a sphere.
    """
    spacing, most = grid.spacing, float(radii.max())
    index = np.rint(grid.index(centres)).astype(np.int64)
    beside = centres - grid.position(index)
    strides = np.array([1, grid.shape[0], grid.shape[0] * grid.shape[1]])
    home, ball = index @ strides, np.arange(len(centres), dtype=np.int64)
    # Distance and index as one integer for the minimum; nonnegative float32 numbers sort like their bits.
    least = np.full(len(grid), _NONE)
    for step in _steps(grid, most + reach):
        distance = np.linalg.norm(step * spacing - beside, axis=1) - radii
        near = distance < reach
        bits = np.maximum(distance[near] + most, 0).astype(np.float32).view(np.int32).astype(np.int64)
        np.minimum.at(least, home[near] + int(step @ strides), bits << 32 | ball[near])
    found = least != _NONE
    distances = np.full(len(grid), reach, np.float32)
    distances[found] = (least[found] >> 32).astype(np.int32).view(np.float32) - np.float32(most)
    owners = np.where(found, least & 0xFFFFFFFF, -1).astype(np.int32)
    shape = grid.shape[::-1]
    return distances.reshape(shape), owners.reshape(shape)


def _steps(grid: Grid, radius: float) -> NDArray[np.int64]:
    """Return steps (m, 3) from the grid point nearest to any position to all points within a radius of it, A."""
    most = [math.ceil(radius / h + 0.5) for h in grid.spacing]
    steps = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)
    nearest = np.linalg.norm(np.maximum(np.abs(steps) - 0.5, 0) * grid.spacing, axis=1)
    within: NDArray[np.int64] = steps[nearest < radius]
    return within


_CORNERS = list(product((0, 1), repeat=3))  # corners of a cell: z, y, x
_EDGES = [(a, b) for a, b in product(_CORNERS, repeat=2) if sum(b) - sum(a) == 1 and all(np.subtract(b, a) >= 0)]


def surface_net(values: NDArray[np.floating]) -> tuple[Floats, Ints]:
    """Extract the surface between negative and nonnegative values.

    values : (nz, ny, nx), finite; the surface is open at the border of the grid

    Returns vertices (n_vertices, 3) as fractional indices along x, y, z, and faces (n_faces, 3). The vertices of each
    triangle are counter-clockwise, seen from the side of positive values.
    """
    inside = values < 0
    cells = _crossed(inside)
    vertices = _vertices(values, cells)
    number = np.full(np.maximum(np.array(values.shape) - 1, 0), -1, np.int32)
    number[cells] = np.arange(len(vertices), dtype=np.int32)
    faces = [_faces(inside, number, axis) for axis in range(3)]
    return vertices, np.concatenate(faces)


def _crossed(inside: NDArray[np.bool_]) -> tuple[NDArray[np.intp], ...]:
    """Return the indices k, j, i of cells with corners on both sides of the surface."""
    n_inside = np.zeros(np.maximum(np.array(inside.shape) - 1, 0), np.uint8)
    for corner in _CORNERS:
        n_inside += inside[tuple(slice(at, at + n) for at, n in zip(corner, n_inside.shape, strict=True))]
    return np.nonzero((n_inside > 0) & (n_inside < 8))


def _vertices(values: NDArray[np.floating], cells: tuple[NDArray[np.intp], ...]) -> Floats:
    """Return the vertex of each cell, (n, 3) fractional indices along x, y, z."""
    low = np.stack(cells, axis=1)
    at = {corner: values[tuple((low + corner).T)].astype(np.float64) for corner in _CORNERS}
    total, count = np.zeros((len(low), 3)), np.zeros(len(low))
    for start, end in _EDGES:
        crosses = (at[start] < 0) != (at[end] < 0)
        step = np.where(crosses, at[start] - at[end], 1.0)
        share = np.where(crosses, at[start] / step, 0.0)
        place = np.array(start) + share[:, None] * np.subtract(end, start)
        total += np.where(crosses[:, None], place, 0.0)
        count += crosses
    place = low + total / np.maximum(count, 1)[:, None]
    return np.ascontiguousarray(place[:, ::-1])


def _faces(inside: NDArray[np.bool_], number: Ints, axis: int) -> Ints:
    """Return the triangles around crossed grid edges along an axis, 0 for z, if all four cells exist."""
    order = (axis, (axis + 1) % 3, (axis + 2) % 3)
    turned, cells = inside.transpose(order), number.transpose(order)
    before, behind = turned[:-1, 1:-1, 1:-1], turned[1:, 1:-1, 1:-1]
    n, m = before.shape[1:]
    around = [cells[:, i : i + n, j : j + m] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    # z, y, x are left-handed: this order is clockwise when viewed against the axis.
    turns = ((~before & behind, around), (before & ~behind, around[::-1]))
    four = np.concatenate([np.stack([each[crossed] for each in turn], 1) for crossed, turn in turns])
    return np.concatenate([four[:, [0, 1, 2]], four[:, [0, 2, 3]]])


PROBE = 1.4  # A, a water molecule
FINEST = 0.5  # A, spacing of the grid
_UNKNOWN = 1.7  # A, radius of carbon, used for atoms without an element
_VERTICES = 60.0  # times n^(2/3), upper limit of vertices at a spacing of 1 A for a compact molecule of n atoms
_MOST_POINTS = 30_000_000  # grid points, 0.6 GB
_COARSER = 1.25


@dataclass(frozen=True, eq=False)
class Surface(ReadOnlyArrays):
    """Triangulated surface of a molecule.

    vertices : (n_vertices, 3) A
    faces : (n_faces, 3) vertices of each triangle, counter-clockwise from outside
    nearest : (n_vertices,) atom with the nearest sphere
    probe, spacing : probe radius and grid spacing, A
    """

    vertices: Floats
    faces: Ints
    nearest: Ints
    probe: float
    spacing: float

    @property
    def crosses(self) -> Floats:
        """Cross products of edges, (n_faces, 3) A^2: outward normals with twice the area of the triangle as length."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        crosses: Floats = np.cross(b - a, c - a)
        return crosses

    @property
    def area(self) -> float:
        """Surface area, A^2."""
        return float(np.linalg.norm(self.crosses, axis=1).sum() / 2)

    @cached_property
    def normals(self) -> Floats:
        """Outward unit normals of vertices, (n_vertices, 3), area-weighted means over adjacent triangles."""
        total = np.zeros_like(self.vertices)
        for axis in range(3):
            for corner in range(3):
                total[:, axis] += np.bincount(self.faces[:, corner], self.crosses[:, axis], len(total))
        normals: Floats = total / np.maximum(np.linalg.norm(total, axis=1), 1e-12)[:, None]
        return normals

    def __repr__(self) -> str:
        return f"Surface({len(self.faces):,} triangles, {self.area:,.0f} A^2, probe {self.probe:.3g} A)"


def molecular_surface(atoms: Atoms, most: int = 150_000) -> Surface:
    """Compute the solvent-excluded surface of all atoms, with van der Waals radii by element.

    most : maximum number of vertices. For larger molecules, the grid is coarser, and the probe at least 1.5 spacings

    Raises InputError if there are no atoms.
    """
    if not len(atoms):
        raise InputError("there are no atoms, so there is no surface")
    radii = element_radii(atoms)
    spacing = max(FINEST, (_VERTICES * len(atoms) ** (2 / 3) / most) ** 0.5)
    while True:
        surface = surface_at(atoms.positions, radii, spacing)
        if surface is not None and len(surface.vertices) <= most:
            return surface
        spacing *= _COARSER


def surface_at(positions: Floats, radii: Floats, spacing: float) -> Surface | None:
    """Compute the surface of spheres on a grid of this spacing, A. Returns None if there are too many grid points."""
    probe = max(PROBE, 1.5 * spacing)
    margin = float(radii.max()) + probe + 4 * spacing
    low, high = positions.min(axis=0) - margin, positions.max(axis=0) + margin
    shape = np.ceil((high - low) / spacing) + 1
    if shape.prod() > _MOST_POINTS:
        return None
    grid = Grid(low, spacing, shape.astype(np.int64))
    accessible, owners = nearest_ball(grid, positions, radii + probe, 2 * spacing)
    index = surface_net(accessible)[0]
    nearest = _nearest(index, grid, owners, positions, radii)
    vertices = _onto(grid.position(index), positions[nearest], radii[nearest] + probe)
    depth, _ = nearest_ball(grid, vertices, np.zeros(len(vertices)), probe + 2 * spacing)
    index, faces = surface_net(np.maximum(accessible, probe - depth))
    nearest = _nearest(index, grid, owners, positions, radii)
    return Surface(grid.position(index), faces, nearest, probe, spacing)


def _onto(vertices: Floats, centres: Floats, radii: Floats) -> Floats:
    """Project each vertex (n, 3) onto a sphere."""
    out = vertices - centres
    moved: Floats = centres + out * (radii / np.linalg.norm(out, axis=1))[:, None]
    return moved


def element_radii(atoms: Atoms) -> Floats:
    """Return van der Waals radii by element, (n,) A, from gemmi (Bondi radii for elements in biomolecules)."""
    if atoms.labels is None:
        return np.full(len(atoms), _UNKNOWN)
    symbols, which = np.unique(atoms.labels.elements, return_inverse=True)
    radii = [_UNKNOWN if symbol == "X" else gemmi.Element(symbol).vdw_r for symbol in symbols.tolist()]
    return np.array(radii, np.float64)[which]


def _nearest(index: Floats, grid: Grid, owners: Ints, positions: Floats, radii: Floats) -> Ints:
    """Return the nearest sphere of each vertex, among the spheres nearest to the corners of its cell."""
    low, vertices = np.floor(index).astype(np.int64), grid.position(index)
    best, nearest = np.full(len(index), np.inf), np.zeros(len(index), np.int32)
    for corner in np.ndindex(2, 2, 2):
        i, j, k = (low + corner).T
        owner = owners[k, j, i]
        distance = np.linalg.norm(vertices - positions[owner], axis=1) - radii[owner]
        nearer = (owner >= 0) & (distance < best)
        best[nearer], nearest[nearer] = distance[nearer], owner[nearer]
    return nearest
