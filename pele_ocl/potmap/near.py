"""Tables on a device of a kernel that walks bins, beside the atoms in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .bins import BinGrid
from .map_slab import MapSlab
from .problem import MapProblem

if TYPE_CHECKING:
    from ..opencl.queue import Queue


class NearTables:
    """Bins around a map, and the ones that groups of points walk, for atoms at any positions.

    grid : the bins
    """

    def __init__(self, queue: Queue, problem: MapProblem, block: tuple[int, int, int]) -> None:
        """block : points of a group along x, y, z"""
        self.grid = grid = BinGrid.of(problem, block)
        self._places = dict(
            corner=queue.vector4(*grid.corner, grid.edge), n_bins=queue.int4(*grid.shape.tolist()),
            n_offsets=len(grid.offsets), offsets=queue.upload(grid.offsets, np.int32),
        )  # fmt: skip
        self._slab: tuple[int, ...] = ()
        self._arguments: dict[str, Any] = {}

    def arguments(self, queue: Queue, slab: MapSlab) -> dict[str, Any]:
        """Arguments of cl/potmap/ladder/cutoff.cl that tell of a slab and its bins, kept for its further maps."""
        if self._slab != (slab.first, *slab.shape):
            names = ("middle_x", "middle_y", "middle_z")
            middles = (queue.upload(each, np.int32) for each in self.grid.middles(slab))
            self._arguments = {**slab.rests(queue), **self._places, **dict(zip(names, middles, strict=True))}
            self._slab = (slab.first, *slab.shape)
        return self._arguments
