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

# Work-items a compute unit, by kind of device. On a CPU more would even out what else the machine does, but each has a
# gradient; on a GPU they hide each other's waiting.
PARTS_A_UNIT = {"CPU": 1, "GPU": 4}
ITEMS = 64  # of a group that adds gradients up, on a GPU
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
        device = self.run.device
        return max(1, min(PARTS_A_UNIT.get(device.kind, 1) * device.compute_units, LARGEST_PARTS // bytes_a_part))

    def _sizes(self) -> dict[str, int]:
        return {"gradients": 4 * self.n_groups * self.n_slots if self.task.gradient else 4}

    def _pairs(self) -> list[KeptLaunch]:
        listed, task, results = self.index, self.task, self.buffers["results"]
        n_parts, gradients = np.int32(self.n_groups), self.buffers["gradients"]
        compute = self._of_items(
            "nonbond_tiled", self.n_groups, 1, task.molecule.traits.model, np.int32(listed.n_tiles), n_parts,
            self.destination, listed.offsets, listed.entries, *listed.own, *self.named("points", "traits"),
            self.energies, gradients,
        )  # fmt: skip
        if not task.gradient:
            return [compute]
        # A work-item a part on a CPU, one an atom on a GPU.
        items, n_shares = (ITEMS, task.n_atoms) if self.run.device.kind == "GPU" else (1, self.n_groups)
        sizes = np.int32(task.n_atoms), np.int32(self.n_slots), n_parts, np.int32(n_shares)
        return [
            compute,
            self._of_items(
                "add_gradients", n_shares, items, *sizes, self.destination, listed.slot_of, gradients, results
            ),
        ]

    def _of_items(self, name: str, n_items: int, items: int, *args: Argument) -> KeptLaunch:
        """The launch of a kernel by n_items work-items, so many a group."""
        width, macros = self.index.width, {**layout_of(self.index.width), **self.task.macros}
        return self.run.keep("nonbond/tiled.cl", name, (n_items, 1), (items, 1), *args, width=width, **macros)
