"""Fourier transforms of mesh lines on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.errors import DeviceError
from ..slabs import Scratch
from .geometry import MeshGeometry

if TYPE_CHECKING:
    from ...opencl.device import Device
    from ...opencl.kernel import Kernel
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue


RADICES = (8, 7, 5, 4, 3, 2)
GPU_LINES, GPU_ROWS = 8, 4  # lines per group, for coalesced memory access: along y and z, and along x
GPU_ITEMS = 64  # maximum work-items per line; each computes a radix-8 butterfly
LEAST_ROOM = 128
CPU_LOCAL = 1 << 18  # bytes of lines that fit in a core's cache
Three = tuple[int, int, int]


@dataclass(frozen=True)
class LineLayout:
    """Work-items of a transform; see cl/potmap/mesh/line.clh.

    length : of the lines; width : lines per work-item; lines : work-items for different lines per group; items :
        work-items per line
    """

    length: int
    width: int
    lines: int
    items: int

    @classmethod
    def of(cls, device: Device, precision: str, length: int, *, is_row: bool, wide: bool = True) -> LineLayout:
        """Choose the layout for lines of a length on a device.

        is_row : whether a line is contiguous in memory; wide : whether a work-item of a CPU may process several lines

        Raises DeviceError if a line does not fit in local memory.
        """
        size = 2 * 2 * room(length) * np.dtype(precision).itemsize  # per line, in two buffers
        most = int(device.handle.local_mem_size)
        if size > most:
            raise DeviceError(f"lines of {length:,} numbers do not fit into the local memory of {device}")
        if device.kind == "CPU":
            width = device.vector_width(precision) if wide else 1
            while width > 1 and size * width > min(most, CPU_LOCAL):
                width //= 2
            return cls(length, width, 1, 1)
        lines = GPU_ROWS if is_row else GPU_LINES
        while lines > 1 and size * lines > most:
            lines //= 2
        items = min(GPU_ITEMS, 1 << max(0, length // 8 - 1).bit_length())
        return cls(length, 1, lines, min(items, device.largest_group // lines))

    @property
    def narrower(self) -> LineLayout:
        """Layout with half as many lines per work-item."""
        return replace(self, width=self.width // 2)

    @property
    def bundle(self) -> int:
        """Number of lines per group."""
        return self.width * self.lines

    def kernel(self, queue: Queue, file: str, name: str, **defines: int) -> Kernel:
        """Build a kernel of a file that includes line.clh, for these lines."""
        return queue.kernel(
            file, name, self.width, ROOM=room(self.length), LINES=self.lines, ITEMS=self.items, **defines
        )

    def arguments(self, queue: Queue, allowed: Sequence[int] = RADICES) -> dict[str, Any]:
        """Return length, radices and roots of unity for the kernels. allowed : radices of the passes"""
        digits = "".join(map(str, radices(self.length, allowed))) or "0"
        return dict(length=self.length, radices=int(digits), roots=queue.table(roots(self.length)))


def room(length: int) -> int:
    """Return the line length that kernels are built for: a power of two, to limit the number of builds."""
    return max(LEAST_ROOM, 1 << (length - 1).bit_length())


def radices(length: int, allowed: Sequence[int] = RADICES) -> list[int]:
    """Factor a length into allowed radices, the largest first."""
    found = []
    for radix in allowed:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    assert length == 1
    return found


@lru_cache(maxsize=16)
def roots(length: int) -> Floats:
    """Return the real and imaginary parts of exp(-2 pi i k / length), (length, 2)."""
    angles = 2 * np.pi * np.arange(length) / length
    return np.stack([np.cos(angles), -np.sin(angles)], axis=1)


class Convolution:
    """Transforms along x, y and z, multiplication by a table, and inverse transforms; see cl/potmap/mesh/transform.cl.

    pitch : row length of a spectrum, of which length / 2 + 1 numbers are used
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
        """Pad a table (nz / 2 + 1, ny / 2 + 1, nx / 2 + 1) to rows of `pitch`, and divide by the number of waves."""
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
        """Return the work-items and groups for `count` lines along an axis."""
        layout = self._layouts[axis]
        return (-(-count // layout.bundle) * layout.lines, layout.items, third), (layout.lines, layout.items, 1)
