"""A mesh on a device: charges onto its nodes, and the potential there."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from .convolution import Convolution
from .geometry import MeshGeometry
from .scratch import Scratch
from .spreading import Spreading
from .window import Window

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue


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
        key = queue.precision, geometry.spacing, *geometry.shape.tolist(), *geometry.lengths.tolist(), kind
        self._table = queue.cached(key, lambda: self._convolution.padded(table()))

    def potential(
        self, queue: Queue, geometry: MeshGeometry, positions: Floats, charges: NDArray[np.floating]
    ) -> Buffer:
        """Compute the potential at the nodes (nz, ny, nx), to be taken through the window.

        geometry : of the mesh's shape, anywhere; positions : (n, 3) A, around which it has nodes
        charges : (n,), rounded as in the near part
        """
        nodes = self._scratch(queue, self._name, int(np.prod(geometry.shape)))
        if len(positions):
            self._spreading.onto(queue, geometry, positions, charges, nodes)
            self._convolution.apply(queue, nodes, self._table, self._scratch)
        else:  # around slices far from all atoms
            queue.clear(nodes)
        return nodes
