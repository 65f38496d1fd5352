"""A part of a map on a device: some slices along z, all points along x and y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .problem import MapProblem

if TYPE_CHECKING:
    from ..opencl.launch import Argument
    from ..opencl.memory import Buffer
    from ..opencl.run import Run

AT_ONCE = 1 << 20  # values with padding that are downloaded at a time, so that they are copied from a cache
MOST_VALUES = 2**31 - 1  # in a slab: the kernels count them with an int


@dataclass(frozen=True, eq=False)
class MapSlab:
    """Slices `first` to `last` - 1 of a map on a device, padded to whole blocks of points.

    shape : (nx, ny, nz) with the padding
    axes : the points' coordinates along x, y, z, as the device has them
    buffers : the same on the device; map : buffer (components, nz, ny, nx), 0 at first
    """

    problem: MapProblem
    first: int
    last: int
    shape: tuple[int, int, int]
    axes: tuple[NDArray[np.floating], ...]
    buffers: tuple[Buffer, ...]
    map: Buffer

    @classmethod
    def on(cls, run: Run, problem: MapProblem, first: int, last: int, pad: tuple[int, int, int]) -> MapSlab:
        """pad : points of a block along x, y, z

        Raises InputError where even a few slices have too many points.
        """
        nx, ny, nz = (-(-n // p) * p for n, p in zip((*problem.grid.shape[:2], last - first), pad, strict=True))
        if problem.components * nx * ny * nz > MOST_VALUES:
            slices = " x ".join(f"{n:,}" for n in problem.grid.shape[:2])
            raise InputError(f"slices of {slices} points are too large; choose a larger spacing")
        axes = tuple(problem.axis(d, first if d == 2 else 0, n) for d, n in enumerate((nx, ny, nz)))
        buffers = tuple(run.upload(axis) for axis in axes)
        return cls(problem, first, last, (nx, ny, nz), axes, buffers, run.zeros(problem.components * nx * ny * nz))

    @property
    def n_points(self) -> int:
        """Points with the padding."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def arguments(self, n_atoms: int) -> tuple[Argument, ...]:
        """The kernels' MAP_ARGUMENTS."""
        sizes = (np.int32(n) for n in (n_atoms, *self.shape))
        return self.problem.law, *sizes, *self.buffers, self.map

    def download(self, run: Run, values: NDArray[np.floating]) -> None:
        """Fill values (components, slices, ny, nx), which lack the padding, in C order each."""
        nx, ny, _ = self.shape
        for component, part in enumerate(values):
            start = component * self.n_points
            if (ny, nx) == part.shape[1:]:
                run.read(part, self.map, start)
                continue
            slices = max(1, AT_ONCE // (nx * ny))
            for first in range(0, len(part), slices):
                some = part[first : first + slices]
                padded = np.empty((len(some), ny, nx), self.problem.precision)
                run.read(padded, self.map, start + first * nx * ny)
                some[:] = padded[:, : some.shape[1], : some.shape[2]]
