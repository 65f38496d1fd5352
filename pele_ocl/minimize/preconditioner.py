"""Preconditioner of minimization: stiffness of bonded terms in blocks of neighbouring atoms, inverted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..energy.bonded import TABLES_OF_TERMS, BondedTerms, bonded_names
from ..energy.bonded.tasks import MEMBERS, Tasks, stable_order
from ..energy.passes import AnyPasses
from ..plan.plan import CHUNK_ATOMS

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder, Launch
    from ..opencl.device import Device

BLOCK = 32  # atoms
HALF = BLOCK // 2  # atoms that consecutive blocks have in common
SIDE = 3 * BLOCK
REST = 15.0  # kcal/mol/A^2, stiffness of all other terms
# Stiffness is added so that noise does not displace atoms: steps along the gradient are at most REACH, root mean
# square. FIRST_STIFFNESS is added before the first gradient is known.
REACH = 0.2  # A
FIRST_STIFFNESS = 1e4  # kcal/mol/A^2
LOCAL_BYTES = 10 << 10  # local memory to build a block, in addition to the block itself
MOST_LOCAL = 48 << 10  # per group; more would reduce occupancy
MOST_BYTES = 1 << 30  # for the blocks of all structures that are minimized together


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Springs from which blocks are built; docs/theory/minimize.md, section 2. A slot is a position in the blocks.

    order : (n_slots,) atoms, padded with -1
    rest : (n_slots,) kcal/mol/A^2, stiffness in addition to the springs
    starts : (HALF * n_blocks + HALF + 1,) first entry of each atom, in the order of blocks
    entries : 4 * spring + index of the atom among the spring's members
    members, stands, details : (n_springs, 4) as in cl/minimize/precondition.cl
    parameters : (k, 4) of the bonded terms
    """

    order: NDArray[np.int32]
    rest: Floats
    starts: NDArray[np.int32]
    entries: NDArray[np.int32]
    members: NDArray[np.int32]
    stands: NDArray[np.int32]
    details: NDArray[np.int32]
    parameters: Floats

    @classmethod
    def of(cls, passes: AnyPasses) -> Preconditioner:
        """Create the springs and blocks of a molecule."""
        atoms, springs = passes.atoms, _springs(passes)
        order, n_blocks = block_order(atoms), blocks_of(len(atoms))
        slots = HALF * np.arange(n_blocks)[:, None] + np.arange(BLOCK)  # indices of their atoms in the order
        padded = np.full(slots.max() + 1, -1, np.int32)
        padded[: len(order)] = order
        rest = np.full(len(padded), REST)
        for kernels in passes.contents.term_kernels:
            rest[: len(atoms)] += np.broadcast_to(kernels.stiffness(atoms), len(atoms))[order]
        stands_of = np.full(len(atoms) + 1, -1, np.int32)  # index of each atom in the order; last entry for padding
        stands_of[order] = np.arange(len(atoms))
        members = springs.members[:, :MEMBERS]
        stands = stands_of[members]
        entries = np.flatnonzero(stands >= 0)
        owners = stands.ravel()[entries]
        return cls(
            padded[slots].ravel(),
            rest[slots].ravel(),
            np.append(0, np.cumsum(np.bincount(owners, minlength=len(padded)))).astype(np.int32),
            entries[stable_order(owners)].astype(np.int32),
            np.maximum(members, 0),
            stands,
            np.column_stack([springs.kinds, springs.first, springs.counts, np.zeros(len(springs))]).astype(np.int32),
            springs.parameters,
        )

    @property
    def n_blocks(self) -> int:
        return len(self.order) // BLOCK

    @property
    def size(self) -> int:
        return self.n_blocks * SIDE**2

    def launch(
        self, passes: AnyPasses, queue: Binder, buffers: Mapping[str, Array], items: int, **macros: int
    ) -> Launch:  # fmt: skip
        """Bind the launch that builds the blocks, with `items` work-items per group.

        buffers : free, positions, state, and inverses, the output
        """
        fine = queue.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        springs = ("starts", "entries", "members", "stands", "details")
        arguments = dict(
            n_atoms=passes.n_atoms, n_blocks=self.n_blocks, step=passes.encoding.step,
            least=self.rest.min(), first_stiffness=FIRST_STIFFNESS, reach=REACH, rest=queue.upload(self.rest),
            parameters=queue.upload(self.parameters, fine), **buffers,
            **{name: queue.upload(getattr(self, name), np.int32) for name in springs},
        )  # fmt: skip
        return queue.bind(
            "minimize/precondition.cl", "build_blocks", (self.n_blocks * items, 1), (items, 1), arguments,
            width=block_width(queue.device, queue.precision, items), LOCAL_BLOCK=int(_fits(queue)), **macros,
        )  # fmt: skip


def _fits(queue: Binder) -> bool:
    """Return whether blocks are summed in local memory: on GPUs where they fit."""
    taken = (SIDE + 1) * SIDE * queue.dtype.itemsize + LOCAL_BYTES
    return queue.device.kind == "GPU" and taken <= min(MOST_LOCAL, queue.device.handle.local_mem_size)


def block_width(device: Device, precision: str, items: int) -> int:
    """Reals in a vector of kernels that use blocks, with `items` work-items per group."""
    return device.vector_width(precision) if items == 1 else 1


def blocks_of(n_atoms: int) -> int:
    """Number of blocks for `n_atoms` atoms; each begins in the middle of the previous one."""
    return max(1, -(-n_atoms // HALF) - 1)


def has_room(passes: AnyPasses) -> bool:
    """Return whether the blocks of all structures that are minimized together fit on the device."""
    most = max(1, CHUNK_ATOMS // passes.n_atoms)  # largest number of structures, so that results do not depend on it
    size = most * blocks_of(passes.n_atoms) * SIDE**2 * passes.queue.dtype.itemsize
    return size <= min(MOST_BYTES, passes.queue.device.largest_buffer)


def block_order(atoms: Atoms) -> NDArray[np.int64]:
    """Order of atoms (n,) in blocks: the given order, but atoms with one bond follow their neighbour."""
    beside = np.arange(len(atoms))
    if atoms.bonded is not None and len(atoms.bonded.bonds):
        bonds = np.concatenate([atoms.bonded.bonds.atoms, atoms.bonded.bonds.atoms[:, ::-1]]).astype(np.int64)
        counts = np.bincount(bonds[:, 0], minlength=len(atoms))
        ends = bonds[(counts[bonds[:, 0]] == 1) & (counts[bonds[:, 1]] > 1)]
        beside[ends[:, 0]] = ends[:, 1]
    return np.lexsort((np.arange(len(atoms)), beside))


def _springs(passes: AnyPasses) -> Tasks:
    of_terms = (kernels.tasks for kernels in passes.contents.grouped if isinstance(kernels, BondedTerms))
    tasks = next(of_terms, None)
    return (Tasks.of(passes.atoms, None, passes.model, ()) if tasks is None else tasks).springs


def has_springs(passes: AnyPasses) -> bool:
    """Return whether any computed term has springs."""
    counted = (name for name in bonded_names(passes.atoms) if name in passes.contents.names)
    return any(TABLES_OF_TERMS[name].has_springs for name in counted)
