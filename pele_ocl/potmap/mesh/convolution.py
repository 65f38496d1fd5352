"""Values at the nodes of a mesh times a table in Fourier space, on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from .geometry import MeshGeometry
from .scratch import Scratch
from .transform import LineLayout

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue

Three = tuple[int, int, int]


class Convolution:
    """Transforms along x, y and z, a table's factors, and the way back; cl/potmap/mesh/transform.cl.

    pitch : numbers of a row of a spectrum, half a length and 1 of them in use
    """

    def __init__(self, queue: Queue, geometry: MeshGeometry) -> None:
        self._shape, self._lengths = geometry.shape.tolist(), geometry.lengths.tolist()
        self._layouts = [
            LineLayout.of(queue.device, queue.precision, length, is_row=axis == 0)
            for axis, length in enumerate(self._lengths)
        ]
        bundle = max(layout.bundle for layout in self._layouts)
        self.pitch = -(-(self._lengths[0] // 2 + 1) // bundle) * bundle
        self._lines = [dict(pitch=self.pitch, **layout.arguments(queue)) for layout in self._layouts]

    def padded(self, table: Floats) -> NDArray[np.float64]:
        """A table (nz / 2 + 1, ny / 2 + 1, nx / 2 + 1) with rows of `pitch`, over the number of wave numbers."""
        scaled = table / np.prod(np.array(self._lengths, float))
        return np.pad(scaled, ((0, 0), (0, 0), (0, self.pitch - table.shape[2])))

    def apply(self, queue: Queue, nodes: Buffer, table: Buffer, scratch: Scratch) -> None:
        """Multiply the spectrum of nodes (nz, ny, nx) by a padded table."""
        (nx, ny, nz), pitch = self._shape, self.pitch
        length_y, lines = self._lengths[1], self._lines
        kernels = [
            self._layouts[axis].kernel(queue, "potmap/mesh/transform.cl", name, ALONG=axis)
            for name, axis in (("rows_forth", 0), ("columns", 1), ("convolve", 2), ("rows_back", 0))
        ]
        forth, columns, convolve, back = kernels
        small, large = nz * ny * pitch, nz * length_y * pitch
        spectrum, wide = scratch(queue, "narrow", 2 * small), scratch(queue, "wide", 2 * large)
        rows = dict(lines[0], n_rows=ny * nz, n_nodes=nx, plane=small, nodes=nodes, spectrum=spectrum)
        there = dict(n_from=ny, n_to=length_y, back=0, plane_from=small, plane_to=large)
        home = dict(n_from=length_y, n_to=ny, back=1, plane_from=large, plane_to=small)
        product = dict(lines[2], n_z=nz, n_y=length_y, plane=large, green=table, spectrum=wide)
        queue.launch(forth, *self._over(0, -(-ny * nz // 2), 1), rows)
        queue.launch(columns, *self._over(1, pitch, nz), {**lines[1], **there, "from": spectrum, "to": wide})
        queue.launch(convolve, *self._over(2, pitch, length_y), product)
        queue.launch(columns, *self._over(1, pitch, nz), {**lines[1], **home, "from": wide, "to": spectrum})
        queue.launch(back, *self._over(0, -(-ny * nz // 2), 1), rows)

    def _over(self, axis: int, count: int, third: int) -> tuple[Three, Three]:
        """Work-items and groups for so many lines along an axis."""
        layout = self._layouts[axis]
        return (-(-count // layout.bundle) * layout.lines, layout.items, third), (layout.lines, layout.items, 1)
