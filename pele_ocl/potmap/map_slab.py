"""A part of a map on a device: some slices along z, all points along x and y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.errors import InputError
from .problem import MapProblem

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

AT_ONCE = 1 << 20  # values with padding that are downloaded at a time; they are copied from a cache
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
    def on(cls, queue: Queue, problem: MapProblem, first: int, last: int, pad: tuple[int, int, int]) -> MapSlab:
        """pad : points of a block along x, y, z

        Raises InputError where even a few slices have too many points.
        """
        nx, ny, nz = (-(-n // p) * p for n, p in zip((*problem.grid.shape[:2], last - first), pad, strict=True))
        if problem.components * nx * ny * nz > MOST_VALUES:
            slices = " x ".join(f"{n:,}" for n in problem.grid.shape[:2])
            raise InputError(f"slices of {slices} points are too large; choose a larger spacing")
        axes = tuple(problem.axis(d, first if d == 2 else 0, n) for d, n in enumerate((nx, ny, nz)))
        buffers = tuple(queue.upload(axis) for axis in axes)
        return cls(problem, first, last, (nx, ny, nz), axes, buffers, queue.zeros(problem.components * nx * ny * nz))

    @property
    def n_points(self) -> int:
        """Points with the padding."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def rests(self, queue: Queue) -> dict[str, Buffer]:
        """Upload the parts of the points' coordinates along x, y, z that rounding took."""
        firsts = (0, 0, self.first)
        names = ("rest_x", "rest_y", "rest_z")
        return {
            name: queue.upload(self.problem.axis_rests(d, firsts[d], self.shape[d])) for d, name in enumerate(names)
        }

    def arguments(self, n_atoms: int) -> dict[str, Any]:
        """Return the kernels' MAP_ARGUMENTS."""
        (nx, ny, nz), (x, y, z) = self.shape, self.buffers
        return dict(law=self.problem.law, n_atoms=n_atoms, nx=nx, ny=ny, nz=nz, x=x, y=y, z=z, map=self.map)

    def download(self, queue: Queue, values: NDArray[np.floating]) -> None:
        """Fill values (components, slices, ny, nx), which lack the padding, in C order each."""
        from ..opencl.staging import read_without_padding

        nx, ny, _ = self.shape
        for component, part in enumerate(values):
            start = component * self.n_points
            if queue.device.kind == "CPU" and (ny, nx) == part.shape[1:]:
                queue.read(part, self.map, start)
            else:
                read_without_padding(queue, part, self.map, start, (ny, nx), AT_ONCE)

    def squares(self, queue: Queue) -> Floats:
        """(components, slices) sums of the squared potentials, and of the field's squared components."""
        (nx, ny), components = self.problem.grid.shape[:2], self.problem.components
        n_slices = self.last - self.first
        sums = queue.empty(components * n_slices * ny)
        kernel = queue.kernel("potmap/squares.cl", "row_squares", queue.device.vector_width(queue.precision))
        pitches = dict(zip(("pitch_x", "pitch_y", "pitch_z"), self.shape, strict=True))
        queue.launch(
            kernel, (ny, n_slices, components), (8, 1, 1),
            dict(n_points=nx, n_rows=ny, map=self.map, sums=sums, **pitches),
        )  # fmt: skip
        rows = queue.download(sums, components * n_slices * ny).reshape(components, n_slices, ny)
        totals: Floats = rows.sum(axis=2, dtype=np.float64)
        return totals
