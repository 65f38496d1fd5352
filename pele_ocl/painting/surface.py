"""Molecular surface: solvent-excluded, as a probe that rolls over the atoms leaves it (Richards 1977).

The probe's middle can be anywhere outside the balls of radius + probe around the atoms. It cannot reach points at least
its radius within these balls. Both distances are taken on a grid. The first is to the atoms, the second to the vertices
of the first surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import gemmi
import numpy as np

from ..atoms import Atoms, Floats, Ints
from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays
from ..grid import Grid
from .balls import nearest_ball
from .nets import surface_net

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
        raise InputError("there is no atom, and so no surface")
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
