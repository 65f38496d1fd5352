"""Interpolation from the nodes of a mesh to the points of a regular grid, on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...atoms import Floats
from .geometry import MeshGeometry
from .scratch import Scratch
from .window import NodeWeights

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue
    from ...opencl.signature import Arguments


class Interpolation:
    """Three small sums, an axis at a time, with weights that are made once."""

    def __init__(
        self, queue: Queue, geometry: MeshGeometry, window: NodeWeights, axes: Sequence[Floats], has_slopes: bool
    ) -> None:
        """axes : coordinates of the points along x, y, z, A; has_slopes : whether the field is taken, too"""
        self._nodes, self._shape = window.nodes, geometry.shape.tolist()
        self._along = [_Along(queue, geometry, window, axis, points, has_slopes) for axis, points in enumerate(axes)]

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
        self._sum(queue, "along_rows", 1, False, (px, count * ny), {"from": nodes, "to": rows, **sizes, **along_x})
        width = queue.device.vector_width(queue.precision)
        sizes = dict(n_nodes=ny, n_points=py, n_inner=px, from_node=0, to_first=0)
        self._sum(
            queue, "along_planes", width, False, (px, py, count), {"from": rows, "to": planes, **sizes, **along_y}
        )
        sizes = dict(n_nodes=count, n_points=pz, n_inner=py * px, from_node=low, to_first=first)
        self._sum(queue, "along_planes", width, True, (py * px, pz, 1), {"from": planes, "to": to, **sizes, **along_z})

    def _sum(
        self, queue: Queue, name: str, width: int, adds: bool, shape: tuple[int, ...], arguments: Arguments
    ) -> None:
        """Interpolate along one axis. shape : numbers that are made, along the first axis `width` at a time if that
        fits
        """
        width = width if shape[0] % width == 0 else 1
        kernel = queue.kernel("potmap/mesh/interpolate.cl", name, width, NODES=self._nodes, ADDS=int(adds))
        items = (shape[0] // width, *shape[1:])
        queue.launch(kernel, items, (min(64, items[0]), *[1] * (len(items) - 1)), arguments)


class _Along:
    """Weights with which points take from the nodes along an axis, on a device.

    low : the first node of all; count : nodes from that on
    """

    def __init__(
        self, queue: Queue, geometry: MeshGeometry, window: NodeWeights, axis: int, points: Floats, has_slopes: bool
    ) -> None:
        """points : (n,) coordinates, A"""
        first, fractions = geometry.placed(points, axis)
        weights, slopes = window.at(fractions)
        self.n_points, self.low = len(points), int(first.min())
        self.count = int(first.max()) - self.low + window.nodes
        self._first, self._weights = queue.upload(first, np.int32), queue.upload(weights)
        self._slopes = queue.upload(-slopes / geometry.spacing) if has_slopes else self._weights

    def tables(self, slopes: bool) -> dict[str, Buffer]:
        """(n,) the first node of each point, and (n, P) its weights for the potential, or for minus its derivative."""
        return dict(first=self._first, weights=self._slopes if slopes else self._weights)
