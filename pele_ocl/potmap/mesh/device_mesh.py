"""Mesh on a device: spreading of charges to nodes, potential at the nodes, and interpolation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import TYPE_CHECKING

import numpy as np

from ...atoms import Floats, Ints
from ...common.threads import in_new_thread
from ..slabs import Scratch
from ..sorting import DeviceAtoms
from .geometry import BLOCK, Box, MeshGeometry, blocks_of
from .split import NodeWeights, Window
from .transform import Convolution

if TYPE_CHECKING:
    from ...opencl.kernel import Arguments
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue


EVERYWHERE: Box = np.full(3, -np.inf), np.full(3, np.inf)


@dataclass(frozen=True, eq=False)
class SortedCharges:
    """Charges on a device, sorted by the block that contains the first of their nodes.

    blocks : number along x, y, z; starts : (n_blocks + 1,) first charge of each block
    first : (n, 4) first node of each charge; weights : of the nodes around it, see cl/potmap/mesh/spread.clh
    scratches : memory of the buffers, which other maps reuse once they are deleted
    """

    blocks: tuple[int, int, int]
    starts: Buffer
    first: Buffer
    weights: Buffer
    scratches: tuple[Scratch, ...]


class Spreading:
    """Spreads charges to nodes with the weights of a window."""

    def __init__(self, queue: Queue, window: NodeWeights, scratch: Scratch) -> None:
        self._window, self._scratch, self._pieces = window, scratch, queue.table(window.pieces)

    def onto(
        self, queue: Queue, geometry: MeshGeometry, atoms: DeviceAtoms, nodes: Buffer, box: Box = EVERYWHERE
    ) -> None:
        """Compute the charges of nodes (nz, ny, nx).

        box : lowest and highest corner, A; atoms outside are ignored, and the geometry must contain the nodes of all
            others
        """
        charges = self.sorted(queue, geometry, atoms, box)
        items, doubles = 1 if queue.device.kind == "CPU" else BLOCK * BLOCK, int(queue.device.has_float64)
        kernel = queue.kernel("potmap/mesh/spread.cl", "spread", NODES=self._window.nodes, ITEMS=items, DOUBLES=doubles)
        bx, by, bz = charges.blocks
        queue.launch(
            kernel, (bx * items, by, bz), (items, 1, 1),
            dict(
                shape=queue.int4(*geometry.shape.tolist()), blocks=queue.int4(bx, by, bz), starts=charges.starts,
                first=charges.first, weights=charges.weights, density=nodes,
            ),
        )  # fmt: skip

    def sorted(
        self, queue: Queue, geometry: MeshGeometry, atoms: DeviceAtoms, box: Box = EVERYWHERE
    ) -> SortedCharges:  # fmt: skip
        """Sort the charges in a box by block and compute their weights. box : as in `onto`"""
        window, spacing = self._window, float(queue.dtype.type(geometry.spacing))
        bx, by, bz = blocks_of(geometry)
        first = atoms.scratch(queue, "first nodes", 4 * atoms.n_atoms, np.int32)
        starts = atoms.scratch(queue, "starts of blocks", bx * by * bz + 1, np.int32)
        weights = self._scratch(queue, "narrow", atoms.n_atoms * (3 * window.nodes + 2 * BLOCK))
        atoms.sort(
            queue, starts, "potmap/mesh/weights.cl", ("count_blocks", "node_weights"), bx * by * bz,
            dict(
                spacing=queue.vector4(spacing, geometry.spacing - spacing), blocks=queue.int4(bx, by, bz),
                low=queue.int4(*geometry.low.tolist()),
            ),
            dict(least=queue.vector4(*box[0]), most=queue.vector4(*box[1])),
            dict(pieces=self._pieces, first=first, weights=weights),
            NODES=window.nodes, TERMS=window.pieces.shape[1],
        )  # fmt: skip
        return SortedCharges((bx, by, bz), starts, first, weights, (atoms.scratch, self._scratch))


class Interpolation:
    """Interpolation from nodes to points by sums along one axis at a time; weights are computed once."""

    def __init__(
        self, queue: Queue, geometry: MeshGeometry, window: NodeWeights, axes: Sequence[Floats], has_slopes: bool
    ) -> None:
        """axes : coordinates of the points along x, y, z, A; has_slopes : whether to also interpolate the field"""
        self._nodes, self._shape = window.nodes, geometry.shape.tolist()
        placed = [geometry.placed(points, axis) for axis, points in enumerate(axes)]
        fractions = np.concatenate([each for _, each in placed])
        weights, slopes = window.at(fractions, has_slopes)
        slopes /= -geometry.spacing
        ends = np.cumsum([0, *map(len, axes)]).tolist()
        self._along = [
            _Along(queue, window, first, weights[part], slopes[part] if has_slopes else None)
            for (first, _), part in zip(placed, starmap(slice, pairwise(ends)), strict=True)
        ]

    def add(
        self, queue: Queue, scratch: Scratch, nodes: Buffer, to: Buffer, first: int = 0, component: int = 0
    ) -> None:
        """Interpolate from nodes (nz, ny, nx), and add the values to points (pz, py, px), which begin at index `first`.

        component : 0 for the potential; 1 to 3 for the field along x, y, z
        """
        nx, ny, _ = self._shape
        px, py, pz = (each.n_points for each in self._along)
        low, count = self._along[2].low, self._along[2].count
        rows, planes = scratch(queue, "narrow", count * ny * px), scratch(queue, "wide", count * py * px)
        along_x, along_y, along_z = (each.tables(component == axis) for axis, each in enumerate(self._along, 1))
        sizes = dict(n_nodes=nx, n_points=px, n_rows=count * ny, from_row=low * ny)
        self._sum(queue, "along_rows", 1, (px, count * ny), {"from": nodes, "to": rows, **sizes, **along_x})
        width = queue.device.vector_width(queue.precision)
        sizes = dict(n_nodes=ny, n_points=py, n_inner=px, from_node=0, to_first=0, adds=False)
        self._sum(queue, "along_planes", width, (px, py, count), {"from": rows, "to": planes, **sizes, **along_y})
        sizes = dict(n_nodes=count, n_points=pz, n_inner=py * px, from_node=low, to_first=first, adds=True)
        self._sum(queue, "along_planes", width, (py * px, pz, 1), {"from": planes, "to": to, **sizes, **along_z})

    def _sum(self, queue: Queue, name: str, width: int, shape: tuple[int, ...], arguments: Arguments) -> None:
        """Interpolate along one axis.

        shape : numbers to compute; vectors of `width` are used if it divides the first dimension
        """
        width = width if shape[0] % width == 0 else 1
        kernel = queue.kernel("potmap/mesh/interpolate.cl", name, width, NODES=self._nodes)
        items = (shape[0] // width, *shape[1:])
        queue.launch(kernel, items, (min(64, items[0]), *[1] * (len(items) - 1)), arguments)


class _Along:
    """Interpolation weights along an axis, on a device.

    low : lowest node; count : number of nodes from there
    """

    def __init__(self, queue: Queue, window: NodeWeights, first: Ints, weights: Floats, slopes: Floats | None) -> None:
        """first : (n,) first node of each point; weights : (n, P); slopes : minus their derivatives, if needed"""
        self.n_points, self.low = len(first), int(first.min())
        self.count = int(first.max()) - self.low + window.nodes
        self._first, self._weights = queue.table(first, np.int32), queue.table(weights)
        self._slopes = self._weights if slopes is None else queue.table(slopes)

    def tables(self, slopes: bool) -> dict[str, Buffer]:
        """Return (n,) first nodes and (n, P) weights, for the potential or for minus its derivative."""
        return dict(first=self._first, weights=self._slopes if slopes else self._weights)


class DeviceMesh:
    """Meshes of the same shape with one window and one table, the Fourier transform of a potential.

    name : of the buffer for the nodes in the scratch
    """

    def __init__(
        self, queue: Queue, name: str, geometry: MeshGeometry, window: Window, scratch: Scratch, kind: Hashable,
        table: Callable[[], Floats],
    ) -> None:  # fmt: skip
        """kind : distinguishes tables for meshes of the same shape; the device caches them"""
        self._name, self._scratch = name, scratch
        self._convolution, self._spreading = Convolution(queue, geometry), Spreading(queue, window, scratch)
        self._key = queue.precision, geometry.spacing, *geometry.shape.tolist(), *geometry.lengths.tolist(), kind
        # A new table is computed while kernels are built and the near part is launched.
        self._make: Callable[[], Floats] = table if self._key in queue.device.cached else in_new_thread(table)
        self._table: Buffer | None = None

    def potential(
        self, queue: Queue, geometry: MeshGeometry, atoms: DeviceAtoms, box: Box = EVERYWHERE
    ) -> Buffer:  # fmt: skip
        """Compute the potential at the nodes (nz, ny, nx), to be interpolated with the window.

        geometry : of the mesh's shape, at any position; box : as in Spreading.onto
        """
        nodes = self._scratch(queue, self._name, int(np.prod(geometry.shape)))
        self._spreading.onto(queue, geometry, atoms, nodes, box)
        if self._table is None:
            self._table = queue.cached(self._key, lambda: self._convolution.padded(self._make()))
        self._convolution.apply(queue, nodes, self._table, self._scratch)
        return nodes
