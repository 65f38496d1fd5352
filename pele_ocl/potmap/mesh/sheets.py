"""Sheets: the finer of two levels of meshes, each around some slices of a map, for the middle part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...atoms import Floats
from ..problem import MapProblem
from ..slabs import MapSlab, Scratch
from ..sorting import DeviceAtoms
from .device_mesh import DeviceMesh, Interpolation
from .geometry import MeshGeometry, SheetGeometry
from .green import middle_table
from .parameters import MeshParameters

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue


class Sheets:
    """Sheets of a map with the same shape, computed one after another; see docs/theory/mesh.md, section 7.

    Their boundaries depend only on the problem, so that slabs do not affect results.
    """

    def __init__(
        self, queue: Queue, problem: MapProblem, parameters: MeshParameters, coarse: MeshGeometry, scratch: Scratch
    ) -> None:
        """coarse : the mesh of the far part"""
        near, far, window = parameters.near, parameters.far, parameters.window
        geometry = SheetGeometry.of(problem, near.spacing, far.cutoff, window.nodes)
        assert geometry is not None
        self.geometry, self.scratch, self._window, self._coarse = geometry, scratch, window, coarse
        nodes = geometry.nodes_of(0)
        self.mesh = DeviceMesh(
            queue, "sheet", nodes, window, scratch, (near, far, window), lambda: middle_table(nodes, near, far, window)
        )
        self._to_nodes: dict[int, Interpolation] = {}
        self._to_points: dict[int, Interpolation] = {}
        self._slab: tuple[int, ...] = ()

    def from_coarse(self, queue: Queue, sheet: int) -> Interpolation:
        """Return the interpolation from the coarse mesh to the nodes of a sheet; unused nodes are undefined."""
        if sheet not in self._to_nodes:
            axes = self.geometry.node_axes(sheet)
            self._to_nodes[sheet] = Interpolation(queue, self._coarse, self._window, axes, False)
        return self._to_nodes[sheet]

    def to_points(self, queue: Queue, sheet: int, slab: MapSlab) -> Interpolation:
        """Return the interpolation from the nodes of a sheet to its slices in a slab."""
        if self._slab != (slab.first, *slab.shape):
            self._to_points, self._slab = {}, (slab.first, *slab.shape)
        if sheet not in self._to_points:
            slices, nodes = self.geometry.slices_of(sheet, slab), self.geometry.nodes_of(sheet)
            axes = slab_axes(slab, slices.start, slices.stop)
            self._to_points[sheet] = Interpolation(queue, nodes, self._window, axes, slab.problem.field)
        return self._to_points[sheet]


class SheetsPart:
    """Sum of middle part and far part at the nodes of sheets, and interpolation to the points of a map."""

    def __init__(self, sheets: Sheets, problem: MapProblem, atoms: DeviceAtoms, coarse_nodes: Buffer) -> None:
        """atoms : of the problem; coarse_nodes : far potential on the coarse mesh"""
        self._sheets, self._problem, self._atoms, self._coarse_nodes = sheets, problem, atoms, coarse_nodes
        self._ready, self._nodes = -1, coarse_nodes  # index and nodes of the last sheet computed

    def add_to(self, queue: Queue, slab: MapSlab) -> None:
        """Add the potential, and the field if requested, to a slab of the map."""
        sheets, plane = self._sheets, slab.shape[0] * slab.shape[1]
        for sheet in sheets.geometry.sheets_of(slab):
            if sheet != self._ready:
                self._nodes, self._ready = self._potential(queue, sheet), sheet
            first = (sheets.geometry.slices_of(sheet, slab).start - slab.first) * plane
            for component in range(self._problem.components):
                sheets.to_points(queue, sheet, slab).add(
                    queue, sheets.scratch, self._nodes, slab.map, component * slab.n_points + first, component
                )

    def _potential(self, queue: Queue, sheet: int) -> Buffer:
        """Compute the sum of middle and far potential at the nodes of a sheet."""
        geometry = self._sheets.geometry
        nodes = self._sheets.mesh.potential(queue, geometry.nodes_of(sheet), self._atoms, geometry.box_of_atoms(sheet))
        self._sheets.from_coarse(queue, sheet).add(queue, self._sheets.scratch, self._coarse_nodes, nodes)
        return nodes


def slab_axes(slab: MapSlab, first: int, last: int) -> list[Floats]:
    """Return the coordinates of points along x, y, z in slices `first` to `last` - 1, A.

    Padding points are placed on the edge of the map.
    """
    problem, axes = slab.problem, []
    for axis, (start, stop) in enumerate(((0, slab.shape[0]), (0, slab.shape[1]), (first, last))):
        index = np.minimum(np.arange(start, stop), problem.grid.shape[axis] - 1)
        axes.append(problem.corner[axis] + problem.grid.spacing[axis] * index)
    return axes
