"""Atoms of a map on a device, and their sorting by cell; see cl/potmap/sort.clh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .problem import MapProblem
from .slabs import Scratch

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

LEAST_PART = 256  # minimum atoms per part on a GPU, where a work-item counts them sequentially
COUNTS_AN_ATOM = 40  # maximum counts (cells times parts) per atom, with several parts
GROUP, SCAN_GROUP = 64, 256
BINS = "potmap/bins.cl"


class DeviceAtoms:
    """Charged atoms on a device, in the order of their problem.

    Coordinates are uploaded in float64 and rounded by kernels; for devices without float64, rounded coordinates and
    their rounding errors are uploaded.

    charges : (n,)
    """

    def __init__(self, queue: Queue, problem: MapProblem, scratch: Scratch | None = None) -> None:
        """scratch : for the memory of the atoms, by default one that the device keeps for other maps"""
        self.scratch = scratch = scratch or Scratch.kept(queue.device, "atoms")
        self.n_atoms, self.has_rests = problem.n_atoms, int(problem.precision == "float32")
        self._has_doubles, exact = int(queue.device.has_float64), problem.positions.T
        if self._has_doubles:
            self._coordinates = dict(positions=scratch.posted(queue, "positions", exact, np.float64))
        else:
            rounded = exact.astype(problem.precision)
            self._coordinates = dict(
                positions=scratch.posted(queue, "positions", rounded),
                rests=scratch.posted(queue, "rests", exact - rounded),
            )
        self.charges = scratch.posted(queue, "charges", problem.rounded)

    def sort(
        self, queue: Queue, starts: Buffer, file: str, kernels: tuple[str, str], n_cells: int, cells: dict[str, Any],
        find: dict[str, Any], place: dict[str, Any], **defines: int,
    ) -> None:  # fmt: skip
        """Sort atoms by cell.

        starts : (n_cells + 1,) receives the first atom of each cell
        kernels : names of two kernels in the file: the first finds the cell of each atom and counts, the second stores
            the sorted atoms
        cells : arguments of both that describe the cells; find, place : additional arguments of the first and the
            second
        """
        n_parts = parts_of(queue.device, self.n_atoms, n_cells)
        per_part = -(-self.n_atoms // n_parts)
        n_counts = -(-n_parts * n_cells // 4) * 4  # GPUs clear four at a time
        sizes = {"counts": n_counts, "homes": 4 * self.n_atoms, "totals": n_cells}
        counts, homes, totals = (self.scratch(queue, name, size, np.int32) for name, size in sizes.items())
        queue.clear(counts, size=counts.dtype.itemsize * n_counts)
        group = min(SCAN_GROUP, queue.device.largest_group) if queue.device.kind == "GPU" else 1
        shared = dict(RESTS=self.has_rests, DOUBLES=self._has_doubles, GROUP=group)
        add_parts, begin_cells = (queue.kernel(BINS, name, **shared) for name in ("add_parts", "begin_cells"))
        count, put = (queue.kernel(file, name, **shared, **defines) for name in kernels)
        atoms = dict(
            n_atoms=self.n_atoms, per_part=per_part, counts=counts, homes=homes, **self._coordinates, **cells,
        )  # fmt: skip
        queue.launch(count, (n_parts,), (1,), {**atoms, **find})
        queue.launch(
            add_parts, (n_cells,), (GROUP,), dict(n_parts=n_parts, n_cells=n_cells, counts=counts, totals=totals)
        )
        queue.launch(begin_cells, (group,), (group,), dict(n_cells=n_cells, totals=totals, starts=starts))
        queue.launch(put, (self.n_atoms,), (GROUP,), {**atoms, "charges": self.charges, "starts": starts, **place})


def parts_of(device: Device, n_atoms: int, n_cells: int) -> int:
    """Return the number of parts of the atoms, each counted by one work-item."""
    parts = min(n_atoms // LEAST_PART, COUNTS_AN_ATOM * n_atoms // n_cells)
    return max(1, parts if device.kind == "GPU" else min(device.compute_units, parts))


def atom_bytes(device: Device, precision: str, n_atoms: int, n_bins: int, n_blocks: int) -> int:
    """Return the bytes for atoms on a device and for sorting them into bins and blocks of nodes, without weights."""
    real, rests, integer = np.dtype(precision).itemsize, int(precision == "float32"), np.dtype(np.int32).itemsize
    coordinates = 3 * (8 if device.has_float64 else 2 * real) + real
    places = 4 * (real + rests * real) + 2 * 4 * integer  # in bins; homes and first nodes
    counts = max(parts_of(device, n_atoms, n_cells) * n_cells for n_cells in (n_bins, n_blocks))
    cells = max(n_bins, n_blocks) + n_bins + n_blocks  # totals, and two times starts
    return n_atoms * (coordinates + places) + integer * (counts + cells + 2)
