"""The far part of a map on a device: from one mesh around everything, or from that and finer sheets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...atoms import Floats
from ..map_slab import MapSlab
from ..problem import MapProblem
from .device_mesh import DeviceMesh
from .geometry import MeshGeometry
from .green import green_table
from .interpolation import Interpolation
from .plan import far_box, mesh_for, near_problem
from .scratch import Scratch
from .sheets import Sheets, SheetsPart, slab_axes

if TYPE_CHECKING:
    from ...opencl.run import Run


class FarMesh:
    """The meshes of a problem, ready on a device for its atoms wherever they have room for them.

    near : the near part of the problem
    """

    def __init__(self, run: Run, problem: MapProblem) -> None:
        parameters = mesh_for(problem)
        window, far = parameters.window, parameters.far
        self.near = near_problem(problem, parameters.near)
        self.window, self.scratch = window, Scratch()
        self.geometry = MeshGeometry.of(far_box(problem, parameters), far.spacing, window.nodes)
        finer = parameters.near.spacing if parameters.has_sheets else 0.0
        self.mesh = DeviceMesh(
            run, "nodes", self.geometry, window, self.scratch, (far, window, finer),
            lambda: green_table(self.geometry, far, window, finer),
        )  # fmt: skip
        self.sheets = Sheets(run, problem, parameters, self.geometry, self.scratch) if parameters.has_sheets else None
        self._slab: tuple[int, ...] = ()

    def holds(self, positions: Floats) -> bool:
        """Whether all nodes around positions (n, 3) [A] are there."""
        first = self.geometry.placed(positions)[0]
        return bool((first >= 0).all() and (first + self.window.nodes <= self.geometry.shape).all())

    def interpolation(self, run: Run, slab: MapSlab) -> Interpolation:
        """From the nodes to the points of a slab, kept for further maps of the slab."""
        if self._slab != (slab.first, *slab.shape):
            axes = slab_axes(slab, slab.first, slab.first + slab.shape[2])
            self._interpolation = Interpolation(run, self.geometry, self.window, axes, slab.problem.field)
            self._slab = (slab.first, *slab.shape)
        return self._interpolation


class FarPart:
    """The far potential at the nodes of a mesh, which lies on a device, and what a slab of the map takes from it."""

    def __init__(self, run: Run, problem: MapProblem, mesh: FarMesh) -> None:
        """mesh : of this problem, or of one with the atoms at other positions"""
        self._mesh = mesh
        self._nodes = mesh.mesh.potential(run, mesh.geometry, problem.positions, problem.atoms4)
        self._sheets = None if mesh.sheets is None else SheetsPart(mesh.sheets, problem, self._nodes)

    def add_to(self, run: Run, slab: MapSlab) -> None:
        """Add the far potential, and the field where that is wanted, to a slab of the map."""
        if self._sheets is not None:
            self._sheets.add_to(run, slab)
            return
        interpolation = self._mesh.interpolation(run, slab)
        for component in range(slab.problem.components):
            first = component * slab.n_points
            interpolation.add(run, self._mesh.scratch, self._nodes, slab.map, first, component)
