"""The preconditioner of minimisation: bonded stiffness in blocks of neighbouring atoms, inverted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..energy.bonded import BondedTerms, bonded_names
from ..energy.bonded.tasks import MEMBERS, Tasks, stable_order
from ..energy.passes import AnyPasses
from ..opencl.shared import Descent
from ..plan.plan import CHUNK_ATOMS

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.memory import Buffer
    from ..opencl.run import Run

BLOCK = 32  # atoms
SIDE = 3 * BLOCK
REST = 40.0  # kcal/mol/A^2, of all that is not bonded terms
LOCAL_BYTES = 10 << 10  # of local memory that building a block takes beside it
MOST_LOCAL = 48 << 10  # of a group; more would keep others away
MOST_BYTES = 1 << 30  # of the blocks of all structures that are minimised together
# Evaluations of a structure after which its blocks are built anew: its geometry is that of its force field by and by.
BUILDS = (0, *(5 << k for k in range(24)))


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The springs that blocks are built of; docs/theory/minimize.md, section 2. A slot is a place in the blocks.

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
        atoms, tasks = passes.atoms, _springs(passes)
        slots = -(-len(atoms) // BLOCK) * BLOCK
        order = block_order(atoms)
        rest = np.full(slots, REST)
        for addend in passes.contents.addends:
            rest[: len(atoms)] += np.broadcast_to(addend.stiffness(atoms), len(atoms))[order]
        places = np.full(len(atoms) + 1, -1, np.int32)  # of each atom that moves; the last one is that of no atom
        places[order] = np.where(free[order], np.arange(len(atoms)), -1)
        atoms_of = tasks.members[:, :MEMBERS]
        members = places[atoms_of]
        task, own = np.nonzero(members >= 0)
        by_slot = stable_order(members[task, own])
        task, own = task[by_slot], own[by_slot]
        slot, others = members[task, own], members[task]
        together = (others >= 0) & (others // BLOCK == slot[:, None] // BLOCK)
        return cls(
            np.append(order, np.full(slots - len(atoms), -1)).astype(np.int32),
            rest,
            np.searchsorted(slot, np.arange(slots + 1)).astype(np.int32),
            np.maximum(atoms_of[task], 0),
            np.where(together, others % BLOCK, np.int32(-1)),
            np.column_stack([tasks.kinds[task], tasks.first[task], tasks.counts[task], own]).astype(np.int32),
            tasks.parameters,
        )

    @property
    def n_blocks(self) -> int:
        """Blocks of a structure."""
        return len(self.order) // BLOCK

    @property
    def size(self) -> int:
        """Reals of a structure's blocks."""
        return self.n_blocks * SIDE**2

    def launch(
        self, passes: AnyPasses, buffers: Sequence[Buffer], items: int, **macros: int
    ) -> KeptLaunch:  # fmt: skip
        """The launch that builds the blocks, by groups of so many work-items.

        buffers : positions, states, and where the blocks go
        """
        run = passes.run
        fine = run.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        args: list[Argument] = [
            np.int32(passes.n_atoms), np.int32(self.n_blocks), run.dtype.type(passes.encoding.step),
            run.dtype.type(self.rest.min()), run.upload(self.rest), run.upload(self.starts, np.int32),
            run.upload(self.members, np.int32), run.upload(self.places, np.int32),
            run.upload(self.details, np.int32), run.upload(self.parameters, fine), *buffers,
        ]  # fmt: skip
        return run.keep(
            "minimize/precondition.cl", "build_blocks", (self.n_blocks * items, 1), (items, 1), *args,
            width=block_width(run.device, run.precision, items), GROUP=items, LOCAL_BLOCK=int(_fits(run)), **macros,
        )  # fmt: skip


def _fits(run: Run) -> bool:
    """Whether a block is added up in local memory: on GPUs that have enough."""
    taken = (SIDE + 1) * SIDE * run.dtype.itemsize + LOCAL_BYTES
    return run.device.kind == "GPU" and taken <= min(MOST_LOCAL, run.device.handle.local_mem_size)


def block_width(device: Device, precision: str, items: int) -> int:
    """Reals in a vector of kernels that take blocks, of so many work-items a group."""
    return device.vector_width(precision) if items == 1 else 1


def is_preconditioned(passes: AnyPasses, descent: Descent) -> bool:
    """Whether directions are: by truncated Newton, and by L-BFGS where bonded terms count and there is room."""
    if descent != Descent.LBFGS:
        return descent == Descent.NEWTON
    most = max(1, CHUNK_ATOMS // passes.n_atoms)  # structures at once; the same whether they are so many or not
    size = most * -(-passes.n_atoms // BLOCK) * SIDE**2 * passes.run.dtype.itemsize
    return size <= min(MOST_BYTES, passes.run.device.largest_buffer) and bool(_spring_names(passes))


def block_order(atoms: Atoms) -> NDArray[np.int64]:
    """The atoms (n,) as blocks take them: in their order, but those of one bond stand beside its other atom."""
    beside = np.arange(len(atoms))
    if atoms.bonded is not None and len(atoms.bonded.bonds):
        bonds = np.concatenate([atoms.bonded.bonds.atoms, atoms.bonded.bonds.atoms[:, ::-1]]).astype(np.int64)
        counts = np.bincount(bonds[:, 0], minlength=len(atoms))
        ends = bonds[(counts[bonds[:, 0]] == 1) & (counts[bonds[:, 1]] > 1)]
        beside[ends[:, 0]] = ends[:, 1]
    return np.lexsort((np.arange(len(atoms)), beside))


def _springs(passes: AnyPasses) -> Tasks:
    """Those of the bonded terms of which an atom moves."""
    of_terms = (addend.tasks for addend in passes.contents.grouped if isinstance(addend, BondedTerms))
    tasks = next(of_terms, None)
    return (Tasks.of(passes.atoms, None, passes.model, ()) if tasks is None else tasks).springs


def _spring_names(passes: AnyPasses) -> list[str]:
    """The terms that count of which springs are made."""
    return [name for name in bonded_names(passes.atoms) if name in passes.contents.names and name != "cmap"]
