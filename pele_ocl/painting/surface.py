"""Molecular surface: solvent-excluded, as a probe that rolls over the atoms leaves it (Richards 1977).

The probe's middle can be anywhere outside the balls of radius + probe around the atoms. It cannot reach points at least
its radius within these balls. Both distances are taken on a grid. The first is to the atoms, the second to the vertices
of the first surface.

The surface of value 0 in numbers on a grid is found by naive surface nets (Gibson, MICCAI 1998, 888). Every cell that
the surface passes through has one vertex, the mean of its edges' points on the surface. Every edge of the grid that
meets it gives a quadrilateral of the four cells around, which is two triangles. Unlike marching cubes it needs no table
of cases, and its triangles are of even size.
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
    """Find the distance of each point to the nearest ball's surface, negative within, and which ball that is.

    centres : (n, 3) A, at least max(radii) + reach + a step within the grid; radii : (n,) A, one ball or more
    reach : A, how far from a ball its distance counts

    Returns (nz, ny, nx) A, `reach` where no ball is that near, and (nz, ny, nx), -1 there. Cost: n times the points of
    a ball.
    """
    spacing, most = grid.spacing, float(radii.max())
    index = np.rint(grid.index(centres)).astype(np.int64)
    beside = centres - grid.position(index)
    strides = np.array([1, grid.shape[0], grid.shape[0] * grid.shape[1]])
    home, ball = index @ strides, np.arange(len(centres), dtype=np.int64)
    # The least of distance and number as one integer: a float32 that is not negative sorts as its bits do.
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
    """Steps (m, 3) from the point nearest to a place to all points within a radius of the place, A."""
    most = [math.ceil(radius / h + 0.5) for h in grid.spacing]
    steps = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)
    nearest = np.linalg.norm(np.maximum(np.abs(steps) - 0.5, 0) * grid.spacing, axis=1)
    within: NDArray[np.int64] = steps[nearest < radius]
    return within


_CORNERS = list(product((0, 1), repeat=3))  # of a cell: z, y, x
_EDGES = [(a, b) for a, b in product(_CORNERS, repeat=2) if sum(b) - sum(a) == 1 and all(np.subtract(b, a) >= 0)]


def surface_net(values: NDArray[np.floating]) -> tuple[Floats, Ints]:
    """Vertices and triangles of the surface between negative and other values.

    values : (nz, ny, nx), finite; a surface that leaves the grid ends there

    Returns vertices (n_vertices, 3), fractional indices along x, y, z, and faces (n_faces, 3). The vertices of each
    triangle go counter-clockwise, seen from the side of positive values.
    """
    inside = values < 0
    cells = _crossed(inside)
    vertices = _vertices(values, cells)
    number = np.full(np.maximum(np.array(values.shape) - 1, 0), -1, np.int32)
    number[cells] = np.arange(len(vertices), dtype=np.int32)
    faces = [_faces(inside, number, axis) for axis in range(3)]
    return vertices, np.concatenate(faces)


def _crossed(inside: NDArray[np.bool_]) -> tuple[NDArray[np.intp], ...]:
    """Find the cells whose corners are not all on one side, as three arrays of indices k, j, i."""
    n_inside = np.zeros(np.maximum(np.array(inside.shape) - 1, 0), np.uint8)
    for corner in _CORNERS:
        n_inside += inside[tuple(slice(at, at + n) for at, n in zip(corner, n_inside.shape, strict=True))]
    return np.nonzero((n_inside > 0) & (n_inside < 8))


def _vertices(values: NDArray[np.floating], cells: tuple[NDArray[np.intp], ...]) -> Floats:
    """Find the vertex of each cell, (n, 3) fractional indices along x, y, z."""
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
    """Make the triangles across the edges of the grid along an axis, 0 for z, if all four cells exist."""
    order = (axis, (axis + 1) % 3, (axis + 2) % 3)
    turned, cells = inside.transpose(order), number.transpose(order)
    before, behind = turned[:-1, 1:-1, 1:-1], turned[1:, 1:-1, 1:-1]
    n, m = before.shape[1:]
    around = [cells[:, i : i + n, j : j + m] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    # z, y, x are left-handed: this turn is clockwise as seen from further along the axis.
    turns = ((~before & behind, around), (before & ~behind, around[::-1]))
    four = np.concatenate([np.stack([each[crossed] for each in turn], 1) for crossed, turn in turns])
    return np.concatenate([four[:, [0, 1, 2]], four[:, [0, 2, 3]]])


PROBE = 1.4  # A, a water molecule
FINEST = 0.5  # A, spacing of the grid
_UNKNOWN = 1.7  # A, radius of an atom without an element: carbon's
_VERTICES = 60.0  # n^(2/3) times that is more than a compact molecule of n atoms has by steps of 1 A
_MOST_POINTS = 30_000_000  # of the grid: 0.6 GB
_COARSER = 1.25


@dataclass(frozen=True, eq=False)
class Surface(ReadOnlyArrays):
    """Triangles around a molecule.

    vertices : (n_vertices, 3) A
    faces : (n_faces, 3) vertices of each triangle, counter-clockwise from outside
    nearest : (n_vertices,) the atom whose sphere is nearest
    probe, spacing : A, of the rolling ball and of the grid
    """

    vertices: Floats
    faces: Ints
    nearest: Ints
    probe: float
    spacing: float

    @property
    def crosses(self) -> Floats:
        """(n_faces, 3) A^2: outward, of twice the length of the triangle's area."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        crosses: Floats = np.cross(b - a, c - a)
        return crosses

    @property
    def area(self) -> float:
        """A^2."""
        return float(np.linalg.norm(self.crosses, axis=1).sum() / 2)

    @cached_property
    def normals(self) -> Floats:
        """(n_vertices, 3) of length 1, outward: the mean of the triangles around, by area."""
        total = np.zeros_like(self.vertices)
        for axis in range(3):
            for corner in range(3):
                total[:, axis] += np.bincount(self.faces[:, corner], self.crosses[:, axis], len(total))
        normals: Floats = total / np.maximum(np.linalg.norm(total, axis=1), 1e-12)[:, None]
        return normals

    def __repr__(self) -> str:
        return f"Surface({len(self.faces):,} triangles, {self.area:,.0f} A^2, probe {self.probe:.3g} A)"


def molecular_surface(atoms: Atoms, most: int = 150_000) -> Surface:
    """Make the solvent-excluded surface of all atoms, with van der Waals radii by element.

    most : vertices; a molecule that would have more gets a coarser grid, and a probe of 1.5 steps at least

    Raises InputError if there is no atom.
    """
    if not len(atoms):
        raise InputError("without atoms there is no surface")
    radii = element_radii(atoms)
    spacing = max(FINEST, (_VERTICES * len(atoms) ** (2 / 3) / most) ** 0.5)
    while True:
        surface = surface_at(atoms.positions, radii, spacing)
        if surface is not None and len(surface.vertices) <= most:
            return surface
        spacing *= _COARSER


def surface_at(positions: Floats, radii: Floats, spacing: float) -> Surface | None:
    """Make the surface of spheres (n, 3) and (n,) A by a grid of this spacing, A; None if it has too many points."""
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
    """Move the vertices (n, 3) onto a sphere each, along its radius."""
    out = vertices - centres
    moved: Floats = centres + out * (radii / np.linalg.norm(out, axis=1))[:, None]
    return moved


def element_radii(atoms: Atoms) -> Floats:
    """Van der Waals radii (n,) A by element, from gemmi's table (Bondi's for the elements of life)."""
    if atoms.labels is None:
        return np.full(len(atoms), _UNKNOWN)
    symbols, which = np.unique(atoms.labels.elements, return_inverse=True)
    radii = [_UNKNOWN if symbol == "X" else gemmi.Element(symbol).vdw_r for symbol in symbols.tolist()]
    return np.array(radii, np.float64)[which]


def _nearest(index: Floats, grid: Grid, owners: Ints, positions: Floats, radii: Floats) -> Ints:
    """Find the nearest sphere of each vertex, among the spheres nearest to the corners of its cell."""
    low, vertices = np.floor(index).astype(np.int64), grid.position(index)
    best, nearest = np.full(len(index), np.inf), np.zeros(len(index), np.int32)
    for corner in np.ndindex(2, 2, 2):
        i, j, k = (low + corner).T
        owner = owners[k, j, i]
        distance = np.linalg.norm(vertices - positions[owner], axis=1) - radii[owner]
        nearer = (owner >= 0) & (distance < best)
        best[nearer], nearest[nearer] = distance[nearer], owner[nearer]
    return nearest
