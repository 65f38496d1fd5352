"""The preconditioner of minimisation: bonded stiffness in blocks of neighbouring atoms, inverted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..energy.bonded import bonded_names
from ..energy.bonded.tasks import Tasks
from ..energy.passes import AnyPasses
from ..opencl.shared import BondedKind

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.memory import Buffer

BLOCK = 32  # atoms
SIDE = 3 * BLOCK
REST = 40.0  # kcal/mol/A^2, of all that is not bonded terms
MOST_BYTES = 1 << 30  # of the blocks of all structures that are minimised together
SPRINGS = (BondedKind.STRETCH, BondedKind.BEND, BondedKind.TWIST, BondedKind.HOLD)
# Evaluations of a structure after which its blocks are built anew: its geometry is that of its force field by and by.
BUILDS = (0, *(5 << k for k in range(24)))


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """What the blocks are built of, on the host; docs/theory/minimize.md, section 2. A slot is an atom's place in a block.

    order : (n_slots,) atoms, -1 behind the last one
    rest : (n_slots,) kcal/mol/A^2, stiffness beside the springs
    starts : (n_slots + 1,) first spring of each slot
    members, places, details : (n_springs, 4) as cl/minimize/precondition.cl takes them
    parameters : (k, 4) of the bonded terms
    """

    order: NDArray[np.int32]
    rest: Floats
    starts: NDArray[np.int32]
    members: NDArray[np.int32]
    places: NDArray[np.int32]
    details: NDArray[np.int32]
    parameters: Floats

    @classmethod
    def of(cls, passes: AnyPasses, free: NDArray[np.bool_]) -> Preconditioner:
        """That of the molecule of some passes. free : (n,) atoms that move"""
        atoms, model = passes.atoms, passes.model
        names = [name for name in bonded_names(atoms) if name in passes.contents.names and name != "cmap"]
        tasks = Tasks.of(atoms, None, model, names)
        slots = -(-len(atoms) // BLOCK) * BLOCK
        rest = np.full(slots, REST)
        for addend in passes.contents.addends:
            rest[: len(atoms)] += addend.stiffness(atoms)
        order = np.where(np.arange(slots) < len(atoms), np.arange(slots), -1)
        task, own = np.nonzero(np.append(free, False)[tasks.members])
        by_slot = np.argsort(tasks.members[task, own], kind="stable")
        task, own = task[by_slot], own[by_slot]
        members, slot = tasks.members[task, :4], tasks.members[task, own]
        together = np.append(free, False)[members] & (members // BLOCK == slot[:, None] // BLOCK)
        return cls(
            order.astype(np.int32),
            rest,
            np.searchsorted(slot, np.arange(slots + 1)).astype(np.int32),
            np.maximum(members, 0).astype(np.int32),
            np.where(together, members % BLOCK, -1).astype(np.int32),
            np.column_stack([tasks.kinds[task], tasks.first[task], tasks.counts[task], own]).astype(np.int32),
            tasks.parameters,
        )

    @staticmethod
    def fits(device: Device, n_structures: int, n_atoms: int, itemsize: int) -> bool:
        """Whether the blocks of so many structures have room on a device."""
        size = n_structures * -(-n_atoms // BLOCK) * SIDE**2 * itemsize
        return size <= min(MOST_BYTES, device.largest_buffer)

    @property
    def n_blocks(self) -> int:
        """Blocks of a structure."""
        return len(self.order) // BLOCK

    @property
    def size(self) -> int:
        """Reals of a structure's blocks."""
        return self.n_blocks * SIDE**2

    def launch(
        self, passes: AnyPasses, positions: Buffer, state: Buffer, inverses: Buffer, items: int, **macros: int
    ) -> KeptLaunch:
        """The launch that builds the blocks of the structures at some positions, of so many work-items a group."""
        run = passes.run
        fine = run.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        args: list[Argument] = [
            np.int32(passes.n_atoms), np.int32(self.n_blocks), run.dtype.type(passes.encoding.step),
            run.dtype.type(self.rest.min()), run.upload(self.rest), run.upload(self.starts, np.int32),
            run.upload(self.members, np.int32), run.upload(self.places, np.int32),
            run.upload(self.details, np.int32), run.upload(self.parameters, fine), positions, state, inverses,
        ]  # fmt: skip
        return run.keep(
            "minimize/precondition.cl", "build_blocks", (self.n_blocks * items, 1), (items, 1), *args,
            width=block_width(run.device, run.precision, items), GROUP=items, **macros,
        )  # fmt: skip


def block_width(device: Device, precision: str, items: int) -> int:
    """Reals in a vector of kernels that take blocks, of so many work-items a group."""
    return device.vector_width(precision) if items == 1 else 1


def has_springs(atoms: Atoms, names: tuple[str, ...]) -> bool:
    """Whether there are bonded terms among those that count, by name, of which blocks are built."""
    return any(name in names and name != "cmap" for name in bonded_names(atoms))
