"""Tables on a device of a kernel that walks bins, beside the atoms in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .bins import BinGrid
from .map_slab import MapSlab
from .problem import MapProblem

if TYPE_CHECKING:
    from ..opencl.run import Run
    from ..opencl.signature import Argument


class NearTables:
    """Bins around a map, and the ones that groups of points walk, for atoms at any positions.

    grid : the bins
    """

    def __init__(self, run: Run, problem: MapProblem, block: tuple[int, int, int]) -> None:
        """block : points of a group along x, y, z"""
        self.grid = grid = BinGrid.of(problem, block)
        self._places = (
            run.vector4(*grid.corner, grid.edge), run.int4(*grid.shape.tolist()), np.int32(len(grid.offsets)),
            run.upload(grid.offsets, np.int32),
        )  # fmt: skip
        self._slab: tuple[int, ...] = ()
        self._arguments: tuple[Argument, ...] = ()

    def arguments(self, run: Run, slab: MapSlab) -> tuple[Argument, ...]:
        """Return the arguments of cl/potmap/ladder/cutoff.cl, from the points' rests on, kept for further maps of the
        slab.
        """
        if self._slab != (slab.first, *slab.shape):
            middles = [run.upload(each, np.int32) for each in self.grid.middles(slab)]
            self._arguments, self._slab = (*slab.rests(run), *self._places, *middles), (slab.first, *slab.shape)
        return self._arguments
