"""Spreading of charges to the nodes around them, on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ..bins import sorted_by_cell
from ..problem import packed4
from .geometry import MeshGeometry
from .scratch import Scratch
from .window import NodeWeights

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue

BLOCK = 8  # nodes of a block along each axis, as in cl/potmap/mesh/spread.clh


class Spreading:
    """Spreads charges by one kind of weights."""

    def __init__(self, queue: Queue, window: NodeWeights, scratch: Scratch) -> None:
        self._window, self._scratch, self._pieces = window, scratch, queue.upload(window.pieces)

    def onto(
        self, queue: Queue, geometry: MeshGeometry, positions: Floats, charges: NDArray[np.floating], nodes: Buffer
    ) -> None:
        """Fill nodes (nz, ny, nx).

        positions : (n, 3) A, around which the geometry has nodes; charges : (n,), rounded as in the near part
        """
        shape, n_nodes = geometry.shape, self._window.nodes
        first, fractions = geometry.placed(positions)
        blocks = -(-shape // BLOCK)
        order, starts = sorted_by_cell([*(first // BLOCK).T], blocks)
        weights = self._weights(queue, fractions, charges, order)
        first_nodes = packed4(*first.T, dtype=np.int32).take(order, axis=0)
        items, doubles = 1 if queue.device.kind == "CPU" else BLOCK * BLOCK, int(queue.device.has_float64)
        kernel = queue.kernel("potmap/mesh/spread.cl", "spread", NODES=n_nodes, ITEMS=items, DOUBLES=doubles)
        bx, by, bz = blocks.tolist()
        queue.launch(
            kernel, (bx * items, by, bz), (items, 1, 1),
            dict(
                shape=queue.int4(*shape.tolist()), blocks=queue.int4(bx, by, bz), starts=queue.hold(starts, np.int32),
                first=queue.hold(first_nodes, np.int32), weights=weights, density=nodes,
            ),
        )  # fmt: skip

    def _weights(
        self, queue: Queue, fractions: Floats, charges: NDArray[np.floating], order: NDArray[np.intp]
    ) -> Buffer:
        """Compute the weights of the nodes around each charge; cl/potmap/mesh/spread.clh."""
        window, n = self._window, len(order)
        placed = packed4(*fractions.T, charges, dtype=queue.precision)
        weights = self._scratch(queue, "narrow", n * (3 * window.nodes + 2 * BLOCK))
        kernel = queue.kernel(
            "potmap/mesh/weights.cl", "node_weights", NODES=window.nodes, TERMS=window.pieces.shape[1]
        )
        sorted_by_block = queue.hold(placed.take(order, axis=0))
        queue.launch(kernel, (n,), (64,), dict(n_atoms=n, placed=sorted_by_block, pieces=self._pieces, weights=weights))
        return weights
