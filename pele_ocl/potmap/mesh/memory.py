"""Memory that a map by a mesh takes on a device."""

from __future__ import annotations

import numpy as np

from ..problem import MapProblem
from .geometry import MeshGeometry
from .parameters import cheapest, coarse_geometry, sheets_of
from .presets import preset_for

ATOM_REALS = 60.0  # numbers of an atom on a device: its windows' weights, its place in the mesh and in the bins
FEW_REALS = 30e3  # numbers of tables that no size of a map changes much: of bins, pieces of windows and transforms

Three = tuple[int, int, int]


def mesh_reals(problem: MapProblem, slab: Three) -> float:
    """Estimate the numbers that the mesh for a problem needs on a device; slab : points along x, y, z, computed at a
    time
    """
    chosen, n_nodes = cheapest(problem), preset_for(problem.accuracy).nodes
    coarse, slice_spacing = coarse_geometry(problem, chosen), float(problem.grid.spacing[2])
    sheets = sheets_of(problem, chosen) if chosen.two else None
    if sheets is None:
        meshes = [_Taken(coarse, slab, slice_spacing)]
    else:
        nx, ny, nz = sheets.shape.tolist()
        meshes = [
            _Taken(coarse, (nx, ny, nz), sheets.spacing),
            _Taken(sheets.nodes_of(0), (slab[0], slab[1], min(slab[2], sheets.depth)), slice_spacing),
        ]
    own = sum(mesh.own_reals(n_nodes) for mesh in meshes)
    shared = max(mesh.narrow(n_nodes) for mesh in meshes) + max(mesh.wide(n_nodes) for mesh in meshes)
    return own + shared + ATOM_REALS * problem.n_atoms + FEW_REALS


class _Taken:
    """A mesh and the points (px, py, pz) that take from it at a time, whose planes are `step` A apart."""

    def __init__(self, geometry: MeshGeometry, points: Three, step: float) -> None:
        self._points, self._step = points, step / geometry.spacing
        self._shape: list[int] = geometry.shape.tolist()
        self._lengths: list[int] = geometry.lengths.tolist()
        self._pitch: float = self._lengths[0] / 2 + 8  # numbers of a row of a spectrum

    def own_reals(self, window_nodes: int) -> float:
        """Count the reals of nodes, table and weights."""
        _, length_y, length_z = self._lengths
        table = self._pitch * (length_y / 2 + 1) * (length_z / 2 + 1)
        return float(np.prod(np.array(self._shape, float))) + table + 2 * window_nodes * sum(self._points)

    def narrow(self, window_nodes: int) -> float:
        """Count the reals of a spectrum; rows of points between nodes and map later use its memory."""
        _, ny, nz = self._shape
        return max(2 * self._pitch * ny * nz, float(self._points[0] * ny * self._reached(window_nodes)))

    def wide(self, window_nodes: int) -> float:
        """Count the reals of a spectrum of whole columns, and of planes of points."""
        (px, py, _), nz = self._points, self._shape[2]
        return max(2 * self._pitch * self._lengths[1] * nz, float(px * py * self._reached(window_nodes)))

    def _reached(self, window_nodes: int) -> int:
        """Planes of nodes that the points take from."""
        return min(self._shape[2], int(self._points[2] * self._step) + window_nodes + 1)
