"""Passes of `tiled`: a pair list as tiles of atoms in vector lanes, each pair once; for CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..opencl.interface import Role
from .index import ITEMS, prefix_sum, segments_by_counting
from .passes import ListPasses
from .records import PairListTask

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

TILE = 8  # atoms, or the vector width if it is smaller; wider vectors hold a tile several times
ENTRIES = 4  # computed together
# Work-items per compute unit. On a CPU more would balance the load better, but each has its own gradient; on a GPU they
# hide latency.
PARTS_A_UNIT = {"CPU": 1, "GPU": 4}
LARGEST_PARTS = 2**28  # bytes of the gradients of all parts


def tile_constants(width: int) -> dict[str, int]:
    """Build definitions of kernels with tiles, for vectors of `width` reals."""
    return {"ENTRIES": ENTRIES, "TILE": min(TILE, width)}


@dataclass(frozen=True, eq=False)
class Entries:
    """A pair list by tiles, on the device; cl/nonbond/tiled.cl describes the buffers.

    width : reals in a vector
    order : (n_slots,) atom in each slot
    own : lane_sigma2 and lane_charges, or two unused buffers of length 1
    """

    width: int
    n_tiles: int
    order: NDArray[np.intp]
    slot_of: Buffer
    offsets: Buffer
    entries: Buffer
    own: tuple[Buffer, ...]


def entries_of(queue: Queue, task: PairListTask) -> Entries:
    """Create the entries of each tile: find neighbours, count entries, sum their offsets, and write entries."""
    width = queue.device.vector_width(queue.precision)
    layout = tile_constants(width)
    tile = layout["TILE"]
    atoms = in_tiles(task.molecule.atoms.positions, tile)
    n_tiles, n_pairs = -(-task.n_atoms // tile), task.n_pairs
    slots = np.empty(task.n_atoms, np.intp)
    slots[atoms] = np.arange(task.n_atoms)
    order = np.pad(atoms, (0, n_tiles * tile - task.n_atoms), mode="edge")  # pads the last tile
    slot_of = queue.upload(slots, np.int32)
    switches = {**layout, "OWN_VALUES": int(bool(task.own))}
    placed = queue.empty(2 * n_pairs, np.uint32)
    if n_pairs:
        place = queue.kernel("nonbond/tile_entries.cl", "place_pairs", width, **switches)
        queue.launch(
            place, (n_pairs,), (ITEMS,), dict(n_pairs=n_pairs, slot_of=slot_of, pairs=task.pairs, placed=placed)
        )  # fmt: skip
    segments = segments_by_counting(queue, placed, n_pairs, len(order), Role.BOTH, tile=tile)
    offsets = queue.zeros(2 * n_tiles + 1, np.int32)
    fill = queue.kernel("nonbond/tile_entries.cl", "tile_entries", width, **switches)
    assert segments.neighbours is not None
    lists = dict(
        n_tiles=n_tiles, starts=segments.offsets, neighbours=segments.neighbours, pair_of=segments.pairs,
        placed=placed, offsets=offsets,
    )  # fmt: skip

    def launch(writing: bool, entries: Buffer, *lanes: Buffer) -> None:
        of_lanes = dict(zip(("lane_sigma2", "lane_charges"), lanes, strict=True)) if task.own else {}
        arguments = dict(writing=writing, entries=entries, **lists, **task.own_arguments, **of_lanes)
        queue.launch(fill, (2 * n_tiles,), (1,), arguments)

    unused = queue.empty(1)
    launch(False, queue.empty(1, np.uint32), unused, unused)
    prefix_sum(queue, offsets, 2 * n_tiles + 1)
    n_entries = int(queue.download(offsets, 2 * n_tiles + 1, np.int32)[-1])
    entries = queue.empty((width // tile + 1) * n_entries, np.uint32)
    lanes = tuple(queue.zeros(width * n_entries) for _ in task.own) or (unused, unused)
    launch(True, entries, *lanes)
    return Entries(width, n_tiles, order, slot_of, offsets, entries, lanes)


def in_tiles(positions: Floats, size: int) -> NDArray[np.intp]:
    """Order the atoms so that every `size` consecutive atoms form a tile; (n,), the last tile may be shorter.

    Boxes are halved across their longest edge until they contain one tile. Such tiles are rounder than those along a
    space-filling curve, and have fewer neighbours.

    positions : (n, 3) A
    """

    def halve(atoms: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        if len(atoms) <= size:
            return [atoms]
        half = size * (-(-len(atoms) // size) // 2)
        axis = np.ptp(positions[atoms], axis=0).argmax()
        atoms = atoms[np.argpartition(positions[atoms, axis], half)]
        return halve(atoms[:half]) + halve(atoms[half:])

    atoms = np.arange(len(positions))
    return atoms if size == 1 else np.concatenate(halve(atoms))


class Tiled(ListPasses[Entries]):
    """Tiles of neighbours in vector lanes, each pair once; each part has its own gradient."""

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
        # One work-item per part on a CPU, one per atom on a GPU.
        items, n_shares = (ITEMS, task.n_atoms) if self.queue.device.kind == "GPU" else (1, self.n_groups)
        arguments = dict(
            n_atoms=task.n_atoms, n_slots=self.n_slots, n_parts=self.n_groups, n_shares=n_shares, to=self.destination,
            slot_of=listed.slot_of, **self.named("gradients", "results"),
        )  # fmt: skip
        return [compute, self._of_items("add_gradients", n_shares, items, arguments)]

    def _of_items(self, name: str, n_items: int, items: int, arguments: Arguments) -> Launch:
        """Bind a kernel with n_items work-items, `items` per group."""
        width, macros = self.index.width, {**tile_constants(self.index.width), **self.task.macros}
        return self.queue.bind("nonbond/tiled.cl", name, (n_items, 1), (items, 1), arguments, width=width, **macros)
