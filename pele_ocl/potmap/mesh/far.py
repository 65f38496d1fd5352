"""The far part of a map on a device: charges onto a mesh, the Green function, and back to points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints
from ..bins import sorted_by_cell
from ..map_slab import MapSlab
from ..problem import MapProblem, packed4
from .convolution import Convolution
from .geometry import MeshGeometry
from .green import green_table
from .plan import mesh_for, near_problem
from .scratch import Scratch
from .split import Split
from .window import NodeWeights, Window

if TYPE_CHECKING:
    from ...opencl.launch import Argument
    from ...opencl.memory import Buffer
    from ...opencl.run import Run

BLOCK = 8  # nodes of a block along each axis, as in cl/potmap/mesh/spread.clh


class Nodes(ABC):
    """Nodes that are ready on a device, for the atoms of a problem wherever there is room for them.

    near : the near part of the problem; window : by which charges and points share in the nodes around them
    """

    def __init__(self, run: Run, near: MapProblem, window: NodeWeights, geometry: MeshGeometry) -> None:
        self.near, self.window, self.geometry = near, window, geometry
        self.pieces, self.scratch = run.upload(window.pieces), Scratch()
        self._slab: tuple[int, ...] = ()
        self._along: list[DeviceAlong] = []

    @abstractmethod
    def potentials(self, run: Run, charges: Buffer) -> Buffer:
        """The far potential at the nodes (nz, ny, nx) from the charges there, whose buffer it may take."""

    def holds(self, positions: Floats) -> bool:
        """Whether all nodes around positions (n, 3) [A] are there."""
        first = self.geometry.placed(positions)[0]
        return bool((first >= 0).all() and (first + self.window.nodes <= self.geometry.shape).all())

    def along(self, run: Run, slab: MapSlab) -> list[DeviceAlong]:
        """The weights of the nodes for the points of a slab along x, y and z, kept for further maps of the slab."""
        if self._slab != (slab.first, *slab.shape):
            axes = [Along.of(slab.problem, self.geometry, self.window, axis, slab) for axis in range(3)]
            self._along = [DeviceAlong(run, each, slab.problem.field) for each in axes]
            self._slab = (slab.first, *slab.shape)
        return self._along


class FarMesh(Nodes):
    """The nodes of a mesh, whose potential comes by Fourier transforms."""

    def __init__(self, run: Run, problem: MapProblem) -> None:
        split, window = mesh_for(problem)
        geometry = MeshGeometry.of(problem, split.spacing, window.nodes)
        super().__init__(run, near_problem(problem, split), window, geometry)
        self.convolution = Convolution(run, geometry)
        self.table = _kept_table(run, self.convolution, geometry, split, window)

    def potentials(self, run: Run, charges: Buffer) -> Buffer:
        """The charges times the Green function, in their place."""
        self.convolution.apply(run, charges, self.table, self.scratch)
        return charges


class FarPart:
    """The far potential at nodes, which lie on a device, and what a slab of the map takes from it."""

    def __init__(self, run: Run, problem: MapProblem, mesh: Nodes) -> None:
        """mesh : of this problem, or of one with the atoms at other positions"""
        self._problem, self._mesh = problem, mesh
        self._window, self._geometry = mesh.window, mesh.geometry
        self._nodes = mesh.potentials(run, self._spread(run))

    def _spread(self, run: Run) -> Buffer:
        """The charges on the nodes, (nz, ny, nx)."""
        shape, n_nodes = self._geometry.shape, self._window.nodes
        first, fractions = self._geometry.placed(self._problem.positions)
        blocks = -(-shape // BLOCK)
        order, starts = sorted_by_cell([*(first // BLOCK).T], blocks)
        weights = self._weights(run, fractions, order)
        first_nodes = packed4(*first.T, dtype=np.int32).take(order, axis=0)
        density = self._mesh.scratch(run, "density", int(np.prod(shape)))
        items, doubles = 1 if run.device.kind == "CPU" else BLOCK * BLOCK, int(run.device.has_float64)
        kernel = run.kernel("potmap/mesh/spread.cl", "spread", NODES=n_nodes, ITEMS=items, DOUBLES=doubles)
        bx, by, bz = blocks.tolist()
        run.launch(
            kernel, (bx * items, by, bz), (items, 1, 1), run.int4(*shape.tolist()), run.int4(bx, by, bz),
            run.upload(starts, np.int32), run.upload(first_nodes, np.int32), weights, density,
        )  # fmt: skip
        return density

    def _weights(self, run: Run, fractions: Floats, order: NDArray[np.intp]) -> Buffer:
        """The weights of the nodes around each charge; cl/potmap/mesh/spread.clh."""
        window, n = self._window, len(order)
        placed = packed4(*fractions.T, self._problem.rounded, dtype=run.precision)
        weights = self._mesh.scratch(run, "narrow", n * (3 * window.nodes + 2 * BLOCK))
        kernel = run.kernel("potmap/mesh/weights.cl", "node_weights", NODES=window.nodes, TERMS=window.pieces.shape[1])
        run.launch(kernel, (n,), (64,), np.int32(n), run.upload(placed.take(order, axis=0)), self._mesh.pieces, weights)
        return weights

    def add_to(self, run: Run, slab: MapSlab) -> None:
        """Add the far potential, and the field where that is wanted, to a slab of the map."""
        along = self._mesh.along(run, slab)
        for component in range(self._problem.components):
            tables = [
                (each.first, each.slopes if component == axis + 1 else each.weights) for axis, each in enumerate(along)
            ]
            self._add_component(run, slab, along[2], tables, component * slab.n_points)

    def _add_component(
        self, run: Run, slab: MapSlab, along_z: DeviceAlong, tables: Sequence[tuple[Buffer, Buffer]], first: int
    ) -> None:
        """One axis after the other; first : of the component in the slab's map"""
        nx, ny, _ = self._geometry.shape.tolist()
        px, py, pz = slab.shape
        low, count = along_z.low, along_z.count
        rows = self._mesh.scratch(run, "narrow", count * ny * px)
        planes = self._mesh.scratch(run, "wide", count * py * px)
        sizes = map(np.int32, (nx, px, count * ny, low * ny))
        self._interpolate(run, "along_rows", 1, False, (px, count * ny), *sizes, *tables[0], self._nodes, rows)
        width = run.device.vector_width(run.precision)
        sizes = map(np.int32, (ny, py, px, 0))
        self._interpolate(
            run, "along_planes", width, False, (px, py, count), *sizes, np.uint64(0), *tables[1], rows, planes
        )
        sizes = map(np.int32, (count, pz, py * px, low))
        self._interpolate(
            run, "along_planes", width, True, (py * px, pz, 1), *sizes, np.uint64(first), *tables[2], planes, slab.map
        )

    def _interpolate(
        self, run: Run, name: str, width: int, adds: bool, shape: tuple[int, ...], *arguments: Argument
    ) -> None:
        """One axis; shape : numbers that are made, those along the first axis `width` at a time where that fits"""
        width = width if shape[0] % width == 0 else 1
        kernel = run.kernel("potmap/mesh/interpolate.cl", name, width, NODES=self._window.nodes, ADDS=int(adds))
        items = (shape[0] // width, *shape[1:])
        run.launch(kernel, items, (min(64, items[0]), *[1] * (len(items) - 1)), *arguments)


@dataclass(frozen=True, eq=False)
class Along:
    """Weights with which the points of a slab take from the nodes along an axis.

    first : (n,) the first node of each point; weights, slopes : (n, P) for the potential and for minus its derivative
    """

    first: Ints
    weights: Floats
    slopes: Floats

    @classmethod
    def of(cls, problem: MapProblem, geometry: MeshGeometry, window: NodeWeights, axis: int, slab: MapSlab) -> Along:
        start, count = (slab.first if axis == 2 else 0), slab.shape[axis]
        index = np.arange(start, start + count)
        last = problem.grid.shape[axis] - 1  # beyond is padding
        points = problem.corner[axis] + problem.grid.spacing[axis] * np.minimum(index, last)
        first, fractions = geometry.placed(points, axis)
        weights, slopes = window.at(fractions)
        return cls(first, weights, -slopes / geometry.spacing)


class DeviceAlong:
    """An Along on a device.

    low : the first node of all; count : nodes from that on; slopes : the weights where there is no field
    """

    def __init__(self, run: Run, along: Along, has_slopes: bool) -> None:
        self.first, self.weights = run.upload(along.first, np.int32), run.upload(along.weights)
        self.slopes = run.upload(along.slopes) if has_slopes else self.weights
        self.low = int(along.first.min())
        self.count = int(along.first.max()) - self.low + int(along.weights.shape[1])


def _kept_table(run: Run, convolution: Convolution, geometry: MeshGeometry, split: Split, window: Window) -> Buffer:
    """The Green function on the device, which keeps it for further maps of a size."""
    key = (run.precision, geometry.spacing, *geometry.shape.tolist(), *geometry.lengths.tolist(), split, window)
    return run.kept(key, lambda: convolution.padded(green_table(geometry, split, window)))
