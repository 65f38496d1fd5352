"""The room that devices have for a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..opencl.device import Device

LINE_REALS = 4  # of local memory for each number of a line: complex, there and back
LARGEST_REALS, ALL_REALS = 5, 9  # for each node, of the largest buffer and of all; doubled along an axis, with padding


@dataclass(frozen=True)
class MeshRoom:
    """The largest mesh that each of the devices can take.

    length : of a transform, at most; nodes : in all, without padding
    """

    length: int = 1 << 30
    nodes: int = 1 << 62

    @classmethod
    def of(cls, devices: Sequence[Device], precision: str) -> MeshRoom:
        """Half of a device's memory, as the map needs some, too; lines lie in local memory, a power of two of room."""
        size = np.dtype(precision).itemsize
        numbers = min(int(device.handle.local_mem_size) for device in devices) // (LINE_REALS * size)
        nodes = [
            min(device.largest_buffer // (LARGEST_REALS * size), device.memory // (2 * ALL_REALS * size))
            for device in devices
        ]
        return cls(1 << (numbers.bit_length() - 1), min(nodes))


ANY_ROOM = MeshRoom()  # of no device in particular
