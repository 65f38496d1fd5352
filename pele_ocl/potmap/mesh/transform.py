"""How lines of a mesh are transformed on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...atoms import Floats

if TYPE_CHECKING:
    from ...opencl.device import Device
    from ...opencl.kernel import Kernel
    from ...opencl.launch import Argument
    from ...opencl.run import Run

RADICES = (8, 7, 5, 4, 3, 2)
GPU_LINES = 4  # beside each other, for whole transactions of memory
GPU_ITEMS = 64  # that share a line, at most
LEAST_ROOM = 128
CPU_LOCAL = 1 << 18  # bytes of lines that stay in a core's cache


@dataclass(frozen=True)
class LineLayout:
    """The work-items of a transform: cl/potmap/mesh/line.clh.

    length : of the lines; width : lines of a work-item; lines : work-items beside each other; items : that share a line
    """

    length: int
    width: int
    lines: int
    items: int

    @classmethod
    def of(cls, device: Device, precision: str, length: int) -> LineLayout:
        """The layout for lines of this length on a device."""
        size = 2 * 2 * room(length) * np.dtype(precision).itemsize  # of a line, there and back
        most = int(device.handle.local_mem_size)
        if device.kind == "CPU":
            width = device.vector_width(precision)
            while width > 1 and size * width > min(most, CPU_LOCAL):
                width //= 2
            return cls(length, width, 1, 1)
        lines = GPU_LINES
        while lines > 1 and size * lines > most // 2:
            lines //= 2
        items = min(GPU_ITEMS, 1 << max(0, (length // 4 - 1).bit_length()))
        return cls(length, 1, lines, min(items, device.largest_group // lines))

    @property
    def bundle(self) -> int:
        """Lines of a group."""
        return self.width * self.lines

    def kernel(self, run: Run, file: str, name: str, **defines: int) -> Kernel:
        """A kernel of a file that includes line.clh, for these lines."""
        return run.kernel(file, name, self.width, ROOM=room(self.length), LINES=self.lines, ITEMS=self.items, **defines)

    def arguments(self, run: Run) -> tuple[Argument, ...]:
        """LINE_ARGUMENTS of the kernels, but the last one."""
        digits = "".join(map(str, radices(self.length)))
        return np.int32(self.length), np.int32(digits), run.upload(roots(self.length))


def room(length: int) -> int:
    """Numbers of a line that kernels are built for: a power of two, so that they are built seldom."""
    return max(LEAST_ROOM, 1 << (length - 1).bit_length())


def radices(length: int) -> list[int]:
    """Factors of a length, each of RADICES."""
    found = []
    for radix in RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    assert length == 1
    return found


def roots(length: int) -> Floats:
    """(length, 2) real and imaginary parts of exp(-2 pi i k / length)."""
    angles = 2 * np.pi * np.arange(length) / length
    return np.stack([np.cos(angles), -np.sin(angles)], axis=1)
