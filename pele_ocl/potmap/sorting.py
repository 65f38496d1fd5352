"""Atoms of a map on a device, and their sorting by cells: cl/potmap/sort.clh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .problem import MapProblem
from .slabs import Scratch

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

LEAST_PART = 256  # atoms of a part on a GPU, where a work-item counts them one after another
COUNTS_AN_ATOM = 40  # most counts (cells times parts) per atom, if there are several parts
GROUP, SCAN_GROUP = 64, 256
BINS = "potmap/bins.cl"


class DeviceAtoms:
    """Charged atoms on a device, in the order of their problem.

    positions : (3, n) A; rests : what rounding took from them, in float32; charges : (n,)
    """

    def __init__(self, queue: Queue, problem: MapProblem) -> None:
        exact = problem.positions.T
        rounded = exact.astype(problem.precision)
        self.n_atoms, self.has_rests = problem.n_atoms, int(problem.precision == "float32")
        self.positions, self.charges = queue.upload(rounded), queue.upload(problem.rounded)
        self.rests = queue.upload(exact - rounded) if self.has_rests else self.positions
        self._scratch = Scratch()

    def sort(
        self, queue: Queue, file: str, kernels: tuple[str, str], n_cells: int, cells: dict[str, Any],
        find: dict[str, Any], place: dict[str, Any], **defines: int,
    ) -> Buffer:  # fmt: skip
        """Sort by cells, and return (n_cells + 1,) where the atoms of each begin.

        kernels : of the file: one finds the cell of each atom and counts, one writes each atom to its place
        cells : arguments of both that describe the cells; find, place : further arguments of the first, of the second
        """
        n_parts = self._parts(queue, n_cells)
        per_part = -(-self.n_atoms // n_parts)
        n_counts = -(-n_parts * n_cells // 4) * 4  # GPUs clear four at a time
        sizes = {"counts": n_counts, "homes": 4 * self.n_atoms, "totals": n_cells}
        counts, homes, totals = (self._scratch(queue, name, size, np.int32) for name, size in sizes.items())
        starts = queue.empty(n_cells + 1, np.int32)
        queue.clear(counts, size=counts.dtype.itemsize * n_counts)
        group = min(SCAN_GROUP, queue.device.largest_group) if queue.device.kind == "GPU" else 1
        shared = dict(RESTS=self.has_rests, GROUP=group)
        add_parts, begin_cells = (queue.kernel(BINS, name, **shared) for name in ("add_parts", "begin_cells"))
        count, put = (queue.kernel(file, name, **shared, **defines) for name in kernels)
        atoms = dict(
            n_atoms=self.n_atoms, per_part=per_part, positions=self.positions, rests=self.rests, counts=counts,
            homes=homes, **cells,
        )  # fmt: skip
        queue.launch(count, (n_parts,), (1,), {**atoms, **find})
        queue.launch(
            add_parts, (n_cells,), (GROUP,), dict(n_parts=n_parts, n_cells=n_cells, counts=counts, totals=totals)
        )
        queue.launch(begin_cells, (group,), (group,), dict(n_cells=n_cells, totals=totals, starts=starts))
        queue.launch(put, (self.n_atoms,), (GROUP,), {**atoms, "charges": self.charges, "starts": starts, **place})
        return starts

    def _parts(self, queue: Queue, n_cells: int) -> int:
        """Parts of the atoms, each of which a work-item counts."""
        units = queue.device.compute_units
        parts = min(self.n_atoms // LEAST_PART, COUNTS_AN_ATOM * self.n_atoms // n_cells)
        return max(1, parts if queue.device.kind == "GPU" else min(units, parts))
