"""A mesh on a device: charges onto its nodes, and the potential there."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ..bins import sorted_by_cell
from .convolution import Convolution
from .geometry import MeshGeometry
from .scratch import Scratch
from .window import Window

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.run import Run

BLOCK = 8  # nodes of a block along each axis, as in cl/potmap/mesh/spread.clh


class DeviceMesh:
    """Meshes of one shape with one window and one table, the Fourier transform of a potential.

    name : of the memory of the nodes in the scratch
    """

    def __init__(
        self, run: Run, name: str, geometry: MeshGeometry, window: Window, scratch: Scratch, kind: Hashable,
        table: Callable[[], Floats],
    ) -> None:  # fmt: skip
        """kind : which table it is, of those for meshes of this shape; the device keeps it for further maps"""
        self._name, self._window, self._scratch = name, window, scratch
        self._convolution, self._pieces = Convolution(run, geometry), run.upload(window.pieces)
        key = run.precision, geometry.spacing, *geometry.shape.tolist(), *geometry.lengths.tolist(), kind
        self._table = run.kept(key, lambda: self._convolution.padded(table()))

    def potential(self, run: Run, geometry: MeshGeometry, positions: Floats, atoms4: NDArray[np.floating]) -> Buffer:
        """The potential at the nodes (nz, ny, nx), to be taken through the window.

        geometry : of the mesh's shape, anywhere; positions : (n, 3) A, around which it has nodes
        atoms4 : (n, 4) with the charges, rounded as those of the near part
        """
        nodes = self._scratch(run, self._name, int(np.prod(geometry.shape)))
        if len(positions):
            self._spread(run, geometry, positions, atoms4, nodes)
            self._convolution.apply(run, nodes, self._table, self._scratch)
        else:  # around slices far from all atoms
            run.clear(nodes)
        return nodes

    def _spread(
        self, run: Run, geometry: MeshGeometry, positions: Floats, atoms4: NDArray[np.floating], nodes: Buffer
    ) -> None:
        """The charges on the nodes."""
        shape, n_nodes = geometry.shape, self._window.nodes
        first, fractions = geometry.placed(positions)
        blocks = -(-shape // BLOCK)
        order, starts = sorted_by_cell([along // BLOCK for along in first.T], blocks)
        weights = self._weights(run, fractions, atoms4, order)
        items, doubles = 1 if run.device.kind == "CPU" else BLOCK * BLOCK, int(run.device.has_float64)
        kernel = run.kernel("potmap/mesh/spread.cl", "spread", NODES=n_nodes, ITEMS=items, DOUBLES=doubles)
        bx, by, bz = blocks.tolist()
        first_nodes = np.zeros((len(first), 4), np.int32)
        first_nodes[:, :3] = first
        run.launch(
            kernel, (bx * items, by, bz), (items, 1, 1), run.int4(*shape.tolist()), run.int4(bx, by, bz),
            run.upload(starts, np.int32), run.upload(first_nodes.take(order, axis=0), np.int32), weights, nodes,
        )  # fmt: skip

    def _weights(self, run: Run, fractions: Floats, atoms4: NDArray[np.floating], order: NDArray[np.intp]) -> Buffer:
        """The weights of the nodes around each charge; cl/potmap/mesh/spread.clh."""
        window, n = self._window, len(order)
        placed = atoms4.copy()
        placed[:, :3] = fractions
        weights = self._scratch(run, "narrow", n * (3 * window.nodes + 2 * BLOCK))
        run.launch(
            run.kernel("potmap/mesh/weights.cl", "node_weights", NODES=window.nodes, TERMS=window.degree + 1), (n,),
            (64,), np.int32(n), run.upload(placed.take(order, axis=0)), self._pieces, weights,
        )  # fmt: skip
        return weights
