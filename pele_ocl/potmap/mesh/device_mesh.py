"""A mesh on a device: charges onto its nodes, and the potential there."""

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
    """Charges on a device in the order of the blocks of nodes that each begins in.

    blocks : along x, y, z; starts : (n_blocks + 1,) the first charge of each
    first : (n, 4) the first node of each charge; weights : of the nodes around it, cl/potmap/mesh/spread.clh
    """

    blocks: tuple[int, int, int]
    starts: Buffer
    first: Buffer
    weights: Buffer


class Spreading:
    """Spreads charges by one kind of weights."""

    def __init__(self, queue: Queue, window: NodeWeights, scratch: Scratch) -> None:
        self._window, self._scratch, self._pieces = window, scratch, queue.table(window.pieces)

    def onto(
        self, queue: Queue, geometry: MeshGeometry, atoms: DeviceAtoms, nodes: Buffer, box: Box = EVERYWHERE
    ) -> None:
        """Fill nodes (nz, ny, nx).

        box : low and high corner, A; only atoms inside count, and the geometry has their nodes
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
        """Sort the charges of the atoms in a box by blocks, and compute their weights. box : of `onto`"""
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
        return SortedCharges((bx, by, bz), starts, first, weights)


class Interpolation:
    """Three small sums, an axis at a time, with weights that are made once."""

    def __init__(
        self, queue: Queue, geometry: MeshGeometry, window: NodeWeights, axes: Sequence[Floats], has_slopes: bool
    ) -> None:
        """axes : coordinates of the points along x, y, z, A; has_slopes : whether the field is taken, too"""
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
        """Add what the points take from nodes (nz, ny, nx) to their own (pz, py, px), which begin at number `first`.

        component : 0, the potential; 1 to 3, the field along x, y, z
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
        """Interpolate along one axis. shape : numbers that are made, along the first axis `width` at a time if that
        fits
        """
        width = width if shape[0] % width == 0 else 1
        kernel = queue.kernel("potmap/mesh/interpolate.cl", name, width, NODES=self._nodes)
        items = (shape[0] // width, *shape[1:])
        queue.launch(kernel, items, (min(64, items[0]), *[1] * (len(items) - 1)), arguments)


class _Along:
    """Weights with which points take from the nodes along an axis, on a device.

    low : the first node of all; count : nodes from that on
    """

    def __init__(self, queue: Queue, window: NodeWeights, first: Ints, weights: Floats, slopes: Floats | None) -> None:
        """first : (n,) the first node of each point; weights : (n, P); slopes : minus their derivatives, if any"""
        self.n_points, self.low = len(first), int(first.min())
        self.count = int(first.max()) - self.low + window.nodes
        self._first, self._weights = queue.table(first, np.int32), queue.table(weights)
        self._slopes = self._weights if slopes is None else queue.table(slopes)

    def tables(self, slopes: bool) -> dict[str, Buffer]:
        """(n,) the first node of each point, and (n, P) its weights for the potential, or for minus its derivative."""
        return dict(first=self._first, weights=self._slopes if slopes else self._weights)


class DeviceMesh:
    """Meshes of one shape with one window and one table, the Fourier transform of a potential.

    name : of the memory of the nodes in the scratch
    """

    def __init__(
        self, queue: Queue, name: str, geometry: MeshGeometry, window: Window, scratch: Scratch, kind: Hashable,
        table: Callable[[], Floats],
    ) -> None:  # fmt: skip
        """kind : which of the tables for meshes of this shape it is; the device keeps it for further maps"""
        self._name, self._scratch = name, scratch
        self._convolution, self._spreading = Convolution(queue, geometry), Spreading(queue, window, scratch)
        self._key = queue.precision, geometry.spacing, *geometry.shape.tolist(), *geometry.lengths.tolist(), kind
        # A new table is made while kernels are built and the near part is launched.
        self._make: Callable[[], Floats] = table if self._key in queue.device.cached else in_new_thread(table)
        self._table: Buffer | None = None

    def potential(
        self, queue: Queue, geometry: MeshGeometry, atoms: DeviceAtoms, box: Box = EVERYWHERE
    ) -> Buffer:  # fmt: skip
        """Compute the potential at the nodes (nz, ny, nx), to be taken through the window.

        geometry : of the mesh's shape, anywhere; box : of Spreading.onto
        """
        nodes = self._scratch(queue, self._name, int(np.prod(geometry.shape)))
        self._spreading.onto(queue, geometry, atoms, nodes, box)
        if self._table is None:
            self._table = queue.cached(self._key, lambda: self._convolution.padded(self._make()))
        self._convolution.apply(queue, nodes, self._table, self._scratch)
        return nodes
