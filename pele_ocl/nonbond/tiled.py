"""Passes of `tiled`: tiles of neighbours in vector lanes, each pair once; for CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .entries import Entries, entries_of
from .layout import tile_constants
from .passes import ListPasses
from .task import PairListTask

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue

# Work-items a compute unit, by kind of device. On a CPU more would even out what else the machine does, but each has a
# gradient; on a GPU they hide each other's waiting.
PARTS_A_UNIT = {"CPU": 1, "GPU": 4}
ITEMS = 64  # of a group that adds gradients up, on a GPU
LARGEST_PARTS = 2**28  # bytes that the gradients of all parts may take


class Tiled(ListPasses[Entries]):
    """Tiles of neighbours in vector lanes, each pair once, every part with a gradient of its own."""

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> Entries:
        return entries_of(queue, task)

    def _n_slots(self) -> int:
        return len(self.index.order)

    def _order(self) -> NDArray[np.intp]:
        return self.index.order

    def _n_groups(self) -> int:
        bytes_a_part = 4 * self.queue.dtype.itemsize * self.n_slots
        device = self.queue.device
        return max(1, min(PARTS_A_UNIT.get(device.kind, 1) * device.compute_units, LARGEST_PARTS // bytes_a_part))

    def _sizes(self) -> dict[str, int]:
        return {"gradients": 4 * self.n_groups * self.n_slots if self.task.gradient else 4}

    def _pairs(self) -> list[Launch]:
        listed, task = self.index, self.task
        lane_sigma2, lane_charges = listed.own
        arguments = dict(
            constants=task.molecule.traits.model, n_tiles=listed.n_tiles, n_parts=self.n_groups, to=self.destination,
            offsets=listed.offsets, entries=listed.entries, lane_sigma2=lane_sigma2, lane_charges=lane_charges,
            energies=self.energies, **self.named("points", "traits", "gradients"),
        )  # fmt: skip
        compute = self._of_items("nonbond_tiled", self.n_groups, 1, arguments)
        if not task.gradient:
            return [compute]
        # A work-item a part on a CPU, one an atom on a GPU.
        items, n_shares = (ITEMS, task.n_atoms) if self.queue.device.kind == "GPU" else (1, self.n_groups)
        arguments = dict(
            n_atoms=task.n_atoms, n_slots=self.n_slots, n_parts=self.n_groups, n_shares=n_shares, to=self.destination,
            slot_of=listed.slot_of, **self.named("gradients", "results"),
        )  # fmt: skip
        return [compute, self._of_items("add_gradients", n_shares, items, arguments)]

    def _of_items(self, name: str, n_items: int, items: int, arguments: Arguments) -> Launch:
        """Bind a kernel of n_items work-items, so many a group."""
        width, macros = self.index.width, {**tile_constants(self.index.width), **self.task.macros}
        return self.queue.bind("nonbond/tiled.cl", name, (n_items, 1), (items, 1), arguments, width=width, **macros)
