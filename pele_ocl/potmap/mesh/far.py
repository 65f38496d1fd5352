"""The far part of a map on a device: charges onto a mesh, the Green function, and back to points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints
from ..map_slab import MapSlab
from ..problem import MapProblem
from .geometry import MeshGeometry
from .green import green_table
from .plan import mesh_for, near_problem
from .transform import LineLayout
from .window import Window

if TYPE_CHECKING:
    from ...opencl.launch import Argument
    from ...opencl.memory import Buffer
    from ...opencl.run import Run

BLOCK = 8  # nodes of a block along each axis, as in cl/potmap/mesh/spread.clh


class FarMesh:
    """A mesh that is ready on a device, for the atoms of a problem wherever it has room for them.

    near : the near part of the problem
    """

    def __init__(self, run: Run, problem: MapProblem) -> None:
        split, self.window = mesh_for(problem)
        self.near = near_problem(problem, split)
        self.geometry = MeshGeometry.of(problem, split.spacing, self.window.nodes)
        table = green_table(self.geometry, split, self.window) / np.prod(self.geometry.lengths.astype(float))
        self.convolution, self.pieces = Convolution(run, self.geometry, table), run.upload(self.window.pieces)
        self._scratch: dict[str, Buffer] = {}
        self._slab: tuple[int, ...] = ()
        self._along: list[DeviceAlong] = []

    def holds(self, positions: Floats) -> bool:
        """Whether all nodes around positions (n, 3) [A] are there."""
        first = self.geometry.placed(positions)[0]
        return bool((first >= 0).all() and (first + self.window.nodes <= self.geometry.shape).all())

    def scratch(self, run: Run, name: str, n: int) -> Buffer:
        """An uninitialised buffer of n reals, kept for the next frame: launches on a device follow one another."""
        size = n * run.dtype.itemsize
        if name not in self._scratch or self._scratch[name].size < size:
            self._scratch[name] = run.empty(n)
        return self._scratch[name]

    def along(self, run: Run, slab: MapSlab) -> list[DeviceAlong]:
        """The weights of the nodes for the points of a slab along x, y and z, kept for further maps of the slab."""
        if self._slab != (slab.first, *slab.shape):
            axes = [Along.of(slab.problem, self.geometry, self.window, axis, slab) for axis in range(3)]
            self._along = [DeviceAlong(run, each, slab.problem.field) for each in axes]
            self._slab = (slab.first, *slab.shape)
        return self._along


class FarPart:
    """The far potential at the nodes of a mesh, which lies on a device, and what a slab of the map takes from it."""

    def __init__(self, run: Run, problem: MapProblem, mesh: FarMesh) -> None:
        """mesh : of this problem, or of one with the atoms at other positions"""
        self._problem, self._mesh = problem, mesh
        self._window, self._geometry = mesh.window, mesh.geometry
        self._nodes = mesh.convolution(run, self._spread(run))

    def _spread(self, run: Run) -> Buffer:
        """The charges on the nodes, (nz, ny, nx)."""
        shape, n_nodes = self._geometry.shape, self._window.nodes
        first, fractions = self._geometry.placed(self._problem.positions)
        blocks = -(-shape // BLOCK)
        order, starts = in_blocks(first, blocks)
        weights = self._weights(run, fractions, order)
        density = self._mesh.scratch(run, "density", int(np.prod(shape)))
        items, doubles = 1 if run.device.kind == "CPU" else BLOCK * BLOCK, int(run.device.has_float64)
        kernel = run.kernel("potmap/mesh/spread.cl", "spread", NODES=n_nodes, ITEMS=items, DOUBLES=doubles)
        bx, by, bz = blocks.tolist()
        first_nodes = run.upload(np.pad(first[order], ((0, 0), (0, 1))), np.int32)
        run.launch(
            kernel, (bx * items, by, bz), (items, 1, 1), run.int4(*shape.tolist()), run.int4(bx, by, bz),
            run.upload(starts, np.int32), first_nodes, weights, density,
        )  # fmt: skip
        return density

    def _weights(self, run: Run, fractions: Floats, order: NDArray[np.intp]) -> Buffer:
        """The weights of the nodes around each charge; cl/potmap/mesh/spread.clh."""
        window, n = self._window, len(order)
        charges = self._problem.atoms4[:, 3]  # rounded as those of the near part
        weights = self._mesh.scratch(run, "weights", n * (3 * window.nodes + 2 * BLOCK))
        run.launch(
            run.kernel("potmap/mesh/weights.cl", "node_weights", NODES=window.nodes, TERMS=window.degree + 1), (n,),
            (64,), np.int32(n), run.upload(fractions[order]), run.upload(charges[order]), self._mesh.pieces, weights,
        )  # fmt: skip
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
        rows = self._mesh.scratch(run, "rows", count * ny * px)
        planes = self._mesh.scratch(run, "planes", count * py * px)
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
    def of(cls, problem: MapProblem, geometry: MeshGeometry, window: Window, axis: int, slab: MapSlab) -> Along:
        start, count = (slab.first if axis == 2 else 0), slab.shape[axis]
        index = np.arange(start, start + count)
        last = problem.grid.shape[axis] - 1  # beyond is padding
        points = problem.corner[axis] + problem.grid.spacing[axis] * np.minimum(index, last)
        first, fractions = geometry.placed(points, axis)
        ahead = fractions[:, None] + 0.5 + (window.nodes // 2 - 1) - np.arange(window.nodes)
        return cls(first, window.weight(ahead), -window.slope(ahead) / geometry.spacing)


class DeviceAlong:
    """An Along on a device.

    low : the first node of all; count : nodes from that on; slopes : the weights where there is no field
    """

    def __init__(self, run: Run, along: Along, has_slopes: bool) -> None:
        self.first, self.weights = run.upload(along.first, np.int32), run.upload(along.weights)
        self.slopes = run.upload(along.slopes) if has_slopes else self.weights
        self.low = int(along.first.min())
        self.count = int(along.first.max()) - self.low + int(along.weights.shape[1])


def in_blocks(first: Ints, blocks: NDArray[np.int64]) -> tuple[NDArray[np.intp], Ints]:
    """The order of atoms by the block of their first node (n, 3), and where those of each block begin."""
    home = first // BLOCK
    keys = np.ravel_multi_index((home[:, 2], home[:, 1], home[:, 0]), tuple(blocks[::-1].tolist()))
    order = np.argsort(keys, kind="stable")
    starts = np.searchsorted(keys[order], np.arange(int(np.prod(blocks)) + 1))
    return order, starts.astype(np.int32)


class Convolution:
    """The Green function between the nodes of a mesh, ready on a device for one set of charges after the other."""

    def __init__(self, run: Run, geometry: MeshGeometry, table: Floats) -> None:
        """table : (nz/2 + 1, ny/2 + 1, nx/2 + 1) of the Green function"""
        self._shape, self._lengths = geometry.shape.tolist(), geometry.lengths.tolist()
        self._layouts = layouts = [LineLayout.of(run.device, run.precision, length) for length in self._lengths]
        bundle = max(layout.bundle for layout in layouts)
        self._pitch = pitch = -(-(self._lengths[0] // 2 + 1) // bundle) * bundle
        self._table = run.upload(np.pad(table, ((0, 0), (0, 0), (0, pitch - table.shape[2]))))
        self._lines = [(*layout.arguments(run), np.int32(pitch)) for layout in layouts]
        self._kernels = [
            run.kernel("potmap/mesh/transform.cl", name, layouts[axis].width, ALONG=axis, **layouts[axis].defines)
            for name, axis in (("rows_forth", 0), ("columns", 1), ("convolve", 2), ("rows_back", 0))
        ]
        _, ny, nz = self._shape
        self._small, self._large = nz * ny * pitch, nz * self._lengths[1] * pitch
        self._spectrum, self._wide = run.empty(2 * self._small), run.empty(2 * self._large)

    def __call__(self, run: Run, nodes: Buffer) -> Buffer:
        """Values at the nodes (nz, ny, nx) times the table, in their place."""
        (nx, ny, nz), (_, length, _), pitch = self._shape, self._lengths, self._pitch
        forth, columns, convolve, back = self._kernels
        lines, spectrum, wide = self._lines, self._spectrum, self._wide
        small, large = np.uint64(self._small), np.uint64(self._large)
        rows = np.int32(ny * nz), np.int32(nx), small
        run.launch(forth, *self._over(0, -(-ny * nz // 2), 1), *lines[0], *rows, nodes, spectrum)
        there = (np.int32(ny), np.int32(length), np.int32(0), small, large)
        run.launch(columns, *self._over(1, pitch, nz), *lines[1], *there, spectrum, wide)
        run.launch(
            convolve, *self._over(2, pitch, length), *lines[2], np.int32(nz), np.int32(length), large, self._table, wide
        )
        home = (np.int32(length), np.int32(ny), np.int32(1), large, small)
        run.launch(columns, *self._over(1, pitch, nz), *lines[1], *home, wide, spectrum)
        run.launch(back, *self._over(0, -(-ny * nz // 2), 1), *lines[0], *rows, spectrum, nodes)
        return nodes

    def _over(self, axis: int, count: int, third: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Work-items and groups for so many lines along an axis."""
        layout = self._layouts[axis]
        return (-(-count // layout.bundle) * layout.lines, layout.items, third), (layout.lines, layout.items, 1)
