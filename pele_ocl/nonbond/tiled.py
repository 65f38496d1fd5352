"""The passes of `tiled`: tiles of neighbours in vector lanes, each pair once; for CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .entries import Entries, entries_of, layout_of
from .passes import ListPasses
from .task import Task

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.run import Run

PARTS_A_UNIT = 1  # work-items a compute unit; more would even out what else the machine does, but each has a gradient
LARGEST_PARTS = 2**28  # bytes that the gradients of all parts may take


class Tiled(ListPasses[Entries]):
    """Tiles of neighbours in vector lanes, each pair once, every part with a gradient of its own."""

    @classmethod
    def prepare(cls, run: Run, task: Task) -> Entries:
        return entries_of(run, task)

    def _n_slots(self) -> int:
        return len(self.index.order)

    def _order(self) -> NDArray[np.intp]:
        return self.index.order

    def _n_groups(self) -> int:
        bytes_a_part = 4 * self.run.dtype.itemsize * self.n_slots
        return max(1, min(PARTS_A_UNIT * self.run.device.compute_units, LARGEST_PARTS // bytes_a_part))

    def _sizes(self) -> dict[str, int]:
        return {"gradients": 4 * self.n_groups * self.n_slots if self.task.gradient else 4}

    def _pairs(self) -> list[KeptLaunch]:
        listed, task, results = self.index, self.task, self.buffers["results"]
        n_parts, gradients = np.int32(self.n_groups), self.buffers["gradients"]
        compute = self._each_part(
            "nonbond_tiled", task.molecule.traits.model, np.int32(listed.n_tiles), n_parts, self.destination,
            listed.offsets, listed.entries, *listed.own, *self.named("points", "traits"), self.energies, gradients,
        )  # fmt: skip
        if not task.gradient:
            return [compute]
        sizes = np.int32(task.n_atoms), np.int32(self.n_slots), n_parts
        return [
            compute,
            self._each_part("add_gradients", *sizes, self.destination, listed.slot_of, gradients, results),
        ]

    def _each_part(self, name: str, *args: Argument) -> KeptLaunch:
        """The launch of a kernel of one work-item a part."""
        width, macros = self.index.width, {**layout_of(self.index.width), **self.task.macros}
        return self.run.keep("nonbond/tiled.cl", name, (self.n_groups, 1), (1, 1), *args, width=width, **macros)
