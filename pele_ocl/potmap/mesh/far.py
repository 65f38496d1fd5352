"""Far part of a map on a device, from one mesh or from two levels of meshes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from ..problem import MapProblem
from ..slabs import MapSlab, Scratch
from ..sorting import DeviceAtoms
from .device_mesh import DeviceMesh, Interpolation
from .geometry import MeshGeometry
from .green import green_table
from .parameters import far_box, mesh_for, near_problem
from .sheets import Sheets, SheetsPart, slab_axes
from .split import NodeWeights

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue


class Nodes(ABC):
    """Nodes on a device, prepared for the atoms of a problem at any positions within them.

    near : near part of the problem; window : weights of the nodes around charges and points
    scratch : memory for nodes and atoms
    sheets : finer nodes between these and the points, or None
    """

    sheets: Sheets | None = None

    def __init__(self, near: MapProblem, window: NodeWeights, geometry: MeshGeometry, scratch: Scratch) -> None:
        self.near, self.window, self.geometry, self.scratch = near, window, geometry, scratch
        self._slab: tuple[int, ...] = ()

    @abstractmethod
    def potential(self, queue: Queue, atoms: DeviceAtoms) -> Buffer:
        """Compute the far potential of atoms at the nodes (nz, ny, nx)."""

    def holds(self, problem: MapProblem) -> bool:
        """Return whether the mesh contains all nodes around the atoms of a problem."""
        if not problem.n_atoms:
            return True
        first = self.geometry.placed(np.array(problem.ends))[0]
        return bool((first >= 0).all() and (first + self.window.nodes <= self.geometry.shape).all())

    def interpolation(self, queue: Queue, slab: MapSlab) -> Interpolation:
        """Return the interpolation from the nodes to the points of a slab; cached for the same slab."""
        if self._slab != (slab.first, *slab.shape):
            axes = slab_axes(slab, slab.first, slab.first + slab.shape[2])
            self._interpolation = Interpolation(queue, self.geometry, self.window, axes, slab.problem.field)
            self._slab = (slab.first, *slab.shape)
        return self._interpolation


class FarMesh(Nodes):
    """Nodes of a mesh, whose potential is computed by Fourier transforms; with two levels, also sheets."""

    def __init__(self, queue: Queue, problem: MapProblem) -> None:
        parameters = mesh_for(problem)
        window, far, scratch = parameters.window, parameters.far, Scratch.kept(queue.device, "nodes")
        geometry = MeshGeometry.of(far_box(problem, parameters), far.spacing, window.nodes)
        super().__init__(near_problem(problem, parameters.near), window, geometry, scratch)
        finer = parameters.near.spacing if parameters.has_sheets else 0.0
        self._mesh = DeviceMesh(
            queue, "nodes", geometry, window, scratch, (far, window, finer),
            lambda: green_table(geometry, far, window, finer),
        )  # fmt: skip
        if parameters.has_sheets:
            self.sheets = Sheets(queue, problem, parameters, geometry, scratch)

    def potential(self, queue: Queue, atoms: DeviceAtoms) -> Buffer:
        return self._mesh.potential(queue, self.geometry, atoms)


class FarPart:
    """Far potential at nodes on a device, and its interpolation to slabs of the map."""

    def __init__(self, queue: Queue, problem: MapProblem, nodes: Nodes, atoms: DeviceAtoms) -> None:
        """nodes : of this problem, or of one with other positions; atoms : of the problem"""
        self._nodes, self._potential = nodes, nodes.potential(queue, atoms)
        self._sheets = None if nodes.sheets is None else SheetsPart(nodes.sheets, problem, atoms, self._potential)

    def add_to(self, queue: Queue, slab: MapSlab) -> None:
        """Add the far potential, and the field if requested, to a slab of the map."""
        if self._sheets is not None:
            self._sheets.add_to(queue, slab)
            return
        interpolation = self._nodes.interpolation(queue, slab)
        for component in range(slab.problem.components):
            first = component * slab.n_points
            interpolation.add(queue, self._nodes.scratch, self._potential, slab.map, first, component)
