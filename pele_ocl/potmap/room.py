"""Room that devices have for a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..opencl.device import Device

LINE_REALS = 4  # of local memory for each number of a line: complex, there and back
LARGEST_REALS, ALL_REALS = 5, 9  # for each node, of the largest buffer and of all; doubled along an axis, with padding
# A GPU is done with a larger mesh before it is done with another level's launches (measured); beyond, the host's table
# for one level takes seconds.
CPU_NODES, GPU_NODES = 1 << 21, 1 << 25


@dataclass(frozen=True)
class MeshRoom:
    """Largest mesh that each of the devices can take.

    length : of a transform, at most; nodes : in all, without padding
    one_level : nodes with padding up to which meshes of two levels are not considered
    """

    length: int = 1 << 30
    nodes: int = 1 << 62
    one_level: int = CPU_NODES

    @classmethod
    def of(cls, devices: Sequence[Device], precision: str) -> MeshRoom:
        """Take half of a device's memory, as the map needs some, too.

        Lines lie in local memory, a power of two of room.
        """
        size = np.dtype(precision).itemsize
        numbers = min(int(device.handle.local_mem_size) for device in devices) // (LINE_REALS * size)
        nodes = [
            min(device.largest_buffer // (LARGEST_REALS * size), device.memory // (2 * ALL_REALS * size))
            for device in devices
        ]
        one_level = GPU_NODES if any(device.kind == "GPU" for device in devices) else CPU_NODES
        return cls(1 << (numbers.bit_length() - 1), min(nodes), one_level)


ANY_ROOM = MeshRoom()  # of no device in particular
