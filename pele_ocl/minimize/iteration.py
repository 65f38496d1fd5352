"""Launches of an iteration after an evaluation, and all that is kept of a structure on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..energy.passes import AnyPasses
from ..energy.result import PASS_TERMS
from ..opencl.interface import N_STATE, Descent, StepState
from .constraints import BondConstraints
from .options import FIRST_LENGTH
from .preconditioner import BLOCK, Preconditioner, block_width, is_preconditioned

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.launch import BoundLaunch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue
    from ..opencl.signature import Arguments

HISTORY = 8  # of steps and changes of gradients that L-BFGS keeps
FIRST_MIX = 0.1  # of FIRE
MOST_CHUNKS = 32  # of atoms; each group of a step adds up the sums of all chunks
MOST_SHARING = 8  # groups that share the preconditioner's blocks of a chunk on a GPU
MOST_GROUPS = 512  # of a step, while each moves its atoms all at once


@dataclass(frozen=True)
class Shape:
    """Division of the work of an iteration after its evaluation.

    items : work-items of a group
    chunk : atoms whose sums a group adds up
    moved : atoms that a group moves; round : so many of them at a time
    sharing : groups that share the preconditioner's blocks of a chunk, at most
    """

    items: int
    chunk: int
    moved: int
    round: int
    sharing: int

    @classmethod
    def of(cls, device: Device, n_atoms: int) -> Shape:
        """Choose the shape for a device and a number of atoms."""
        if device.kind == "CPU":
            return cls(1, max(1024, -(-n_atoms // MOST_CHUNKS)), 1024, 16, 1)
        items = min(192, device.largest_group)
        atoms = 64  # of which a work-item of such a group has a coordinate
        rounds = -(-n_atoms // (atoms * MOST_GROUPS))
        return cls(items, max(atoms, -(-n_atoms // MOST_CHUNKS)), rounds * atoms, atoms, MOST_SHARING)


class Iteration:
    """Directions, steps and decisions of a structure, all on the device.

    It does not keep the passes, only their launches and buffers.

    per_row : by name, the buffer of what is kept of a structure
    begin : launches that find what stays as it is while a structure is minimised
    evaluation : launches of an evaluation; both : of an iteration, for either buffer of the states
    builds : launches that build the preconditioner, for either; none without one
    is_joined : if sums and step are one launch, cl/minimize/iterate.cl
    counters : names of its counters, 0 when a structure begins
    """

    history: ClassVar[int] = HISTORY

    def __init__(
        self, passes: AnyPasses, queue: Queue, stopping: np.void, descent: Descent, free: NDArray[np.bool_],
        constraints: BondConstraints | None = None, keeps_radii: bool = False,
    ) -> None:  # fmt: skip
        """Make the buffers.

        passes : of the energy of one structure, with gradient; queue : makes buffers and binds launches
        free : (n,) atoms that move
        keeps_radii : whether the Born radii of a structure stay as they are when it begins
        """
        n = passes.n_atoms
        self.fine = queue.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        self._shape = Shape.of(queue.device, n)
        self._n_chunks = -(-n // self._shape.chunk)
        self.state_size = N_STATE + 3 * self.history + 2 * self.history**2
        real, coordinate = queue.dtype, passes.encoding.dtype
        self._queue = queue
        self._preconditioner = Preconditioner.of(passes) if is_preconditioned(passes, descent) else None
        self.per_row = {
            name: queue.zeros(size, dtype)
            for name, size, dtype in (
                ("base", 3 * n, coordinate), ("base_gradient", 3 * n, real), ("directions", 3 * n, real),
                ("history", 6 * n * self.history, real), ("state", self.state_size, self.fine),
                ("next_state", self.state_size, self.fine), *self._more(3 * n, real),
                *([("inverses", self._preconditioner.size, real)] if self._preconditioner else []),
            )
        }  # fmt: skip
        self.begin: Sequence[BoundLaunch] = ()
        self.evaluation = passes.launches
        if keeps_radii:
            self.begin, self.evaluation = passes.apart_at_radii
        n_blocks = self._preconditioner.n_blocks if self._preconditioner else 0
        self._sharing = min(self._shape.sharing, -(-n_blocks // self._n_chunks))
        self._n_rows = self.history + 2 + self._sharing
        self._sums = queue.empty(4 * self._n_rows * self._n_chunks, self.fine)
        # P g and P y of a trial, between two launches, of two blocks for each atom; 0 where there is but one.
        is_softened = ("softened", "changes") if self._preconditioner else ()
        self._softened: Arguments = {name: queue.zeros(6 * n) for name in is_softened}  # SOFTENED_ARGUMENTS
        self.free, self._stopping, self._descent = queue.upload_each(free.astype(real)), stopping, descent
        held = () if constraints is None else constraints.launches(passes, queue, self.per_row["base"], self.free)
        self._evaluated, self._stepped = held[:1], held[1:]  # what follows an evaluation and a step
        either = ("state", "next_state"), ("next_state", "state")
        self.is_joined = self._may_join(passes)
        self.counters: tuple[str, ...] = ("done", "done_next") if self.is_joined else ()
        self.per_row |= {name: queue.zeros(2, np.int32) for name in self.counters}
        launches = self._joined if self.is_joined else self._launches
        self.both = [launches(passes, *names) for names in either]
        self.builds = self._builds_of(passes)

    def _more(self, size: int, real: np.dtype[np.generic]) -> list[tuple[str, int, np.dtype[np.generic]]]:
        """Further buffers to keep: names, sizes of a seat, types."""
        return []

    def _macros(self, passes: AnyPasses) -> dict[str, int]:
        return {
            "M": self.history,
            "GROUP": self._shape.items,
            "PRECONDITIONED": int(self._preconditioner is not None),
            **({"BLOCK": BLOCK} if self._preconditioner else {}),
            **passes.encoding.macros,
            **passes.result_macros,
        }

    def _builds_of(self, passes: AnyPasses) -> list[BoundLaunch]:
        """Launches that build the blocks at the bases, for either buffer of the states."""
        return [self._build(passes, "base", state) for state in ("state", "next_state")] if self._preconditioner else []

    def _build(self, passes: AnyPasses, positions: str, state: str) -> BoundLaunch:
        """Launch that builds the blocks at positions of this name."""
        assert self._preconditioner is not None
        names = {"positions": positions, "state": state, "inverses": "inverses"}
        there = self.per_row | passes.named("positions")
        buffers = {"free": self.free, **{parameter: there[name] for parameter, name in names.items()}}
        return self._preconditioner.launch(passes, self._queue, buffers, self._shape.items, **self._macros(passes))

    def _measure(self, passes: AnyPasses) -> BoundLaunch:
        """Launch that adds up over the atoms at the trials."""
        shape, queue = self._shape, self._queue
        arguments = dict(
            step=passes.encoding.step, free=self.free, sums=self._sums, **self._counts(passes), **self._blocks(queue),
            **passes.named("positions", "results"), **self._named("base", "base_gradient", "history"),
        )  # fmt: skip
        return queue.bind(
            "minimize/measure.cl", "measure", (self._n_chunks * shape.items, self._n_rows), (shape.items, 1),
            arguments, width=self._width(queue), **self._macros(passes),
        )  # fmt: skip

    def _named(self, *names: str) -> dict[str, Buffer]:
        """Choose buffers of what is kept, for kernels whose parameters have the same names."""
        return {name: self.per_row[name] for name in names}

    def _counts(self, passes: AnyPasses) -> Arguments:
        """Integers of MEASURE_ARGUMENTS, cl/minimize/measure.clh."""
        names = passes.contents.names
        return dict(
            n_atoms=passes.n_atoms, **passes.result_sizes, chunk_size=self._shape.chunk, n_chunks=self._n_chunks,
            sharing=self._sharing, counted=sum(1 << k for k, name in enumerate(PASS_TERMS) if name in names),
        )  # fmt: skip

    def _blocks(self, queue: Queue) -> Arguments:
        """BLOCK_ARGUMENTS of cl/minimize/measure.clh."""
        if self._preconditioner is None:
            return {}
        n_blocks, order = self._preconditioner.n_blocks, queue.upload(self._preconditioner.order, np.int32)
        return dict(
            n_blocks=n_blocks, blocks_of_chunk=-(-n_blocks // self._n_chunks), order=order, **self._named("inverses"),
            **self._softened,
        )  # fmt: skip

    def _width(self, queue: Queue) -> int:
        """Reals in a vector of the kernels that take blocks."""
        return block_width(queue.device, queue.precision, self._shape.items) if self._preconditioner else 1

    def _launches(self, passes: AnyPasses, before: str, after: str) -> list[BoundLaunch]:
        """Launches of one iteration: an evaluation, its sums, a step."""
        queue, shape = self._queue, self._shape
        n_groups = -(-passes.n_atoms // shape.moved)
        arguments = dict(
            n_atoms=passes.n_atoms, **passes.result_sizes, n_chunks=self._n_chunks, sharing=self._sharing,
            **self._softened, **self._stepped_by(passes, before, after),
        )  # fmt: skip
        step_on = queue.bind(
            "minimize/step.cl", "step_on", (n_groups * shape.items, 1), (shape.items, 1), arguments,
            ROUND=shape.round, **self._macros(passes),
        )  # fmt: skip
        return [*self.evaluation, *self._evaluated, self._measure(passes), step_on, *self._stepped]

    def _may_join(self, passes: AnyPasses) -> bool:
        """Tell if sums and step are one launch: if all groups that wait in it leave room for others.

        NVIDIA's GPUs alone do so, whose units each have room for a group.
        """
        device, n_waiting = self._queue.device, -(-passes.n_atoms // self._shape.moved)
        has_room = n_waiting < device.handle.max_compute_units
        return not self._queue.is_shared and has_room and device.vendor == "NVIDIA"

    def _joined(self, passes: AnyPasses, before: str, after: str) -> list[BoundLaunch]:
        """Launches of one iteration with the sums and the step in one: cl/minimize/iterate.cl."""
        queue, shape = self._queue, self._shape
        n_groups = max(self._n_chunks, -(-passes.n_atoms // shape.moved))
        done, done_next = ("done", "done_next") if before == "state" else ("done_next", "done")
        arguments = dict(
            done=self.per_row[done], done_next=self.per_row[done_next], **self._counts(passes), **self._blocks(queue),
            **self._stepped_by(passes, before, after),
        )  # fmt: skip
        iterate = queue.bind(
            "minimize/iterate.cl", "iterate", (n_groups * shape.items, self._n_rows + 1), (shape.items, 1), arguments,
            ROUND=shape.round, **self._macros(passes),
        )  # fmt: skip
        return [*self.evaluation, *self._evaluated, iterate, *self._stepped]

    def _stepped_by(self, passes: AnyPasses, before: str, after: str) -> Arguments:
        """STEP_ARGUMENTS of cl/minimize/step.clh, but for sizes and SOFTENED_ARGUMENTS."""
        return dict(
            moved=self._shape.moved, descent=self._descent, stopping=self._stopping, step=passes.encoding.step,
            free=self.free, sums=self._sums, before=self.per_row[before], after=self.per_row[after],
            **passes.named("positions", "results"),
            **self._named("base", "base_gradient", "directions", "history"),
        )  # fmt: skip

    def first_state(self, n_moving: int) -> NDArray[Any]:
        """Make the state of a structure that begins. n_moving : atoms that move"""
        state = np.zeros(self.state_size, self.fine)
        state[StepState.MOVING] = n_moving
        state[StepState.SHARE], state[StepState.LENGTH] = 1, FIRST_LENGTH[self._descent]
        state[StepState.MIX] = FIRST_MIX
        return state
