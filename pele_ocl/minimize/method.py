"""Interface of minimization methods: arrays of a structure, and launches after each evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..common.errors import PeleError
from ..energy.passes import AnyPasses
from ..energy.result import PASS_TERMS
from ..opencl.interface import N_STATE, StepState
from .constraints import BondConstraints
from .preconditioner import BLOCK, Preconditioner, block_width

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder, Launch
    from ..opencl.device import Device
    from ..opencl.kernel import Arguments

MOST_CHUNKS = 32  # of atoms; each group of a step adds the sums of all chunks
MOST_SHARING = 8  # groups that share the preconditioner blocks of a chunk on a GPU
MOST_GROUPS = 512  # per step, if each moves all its atoms in one round


@dataclass(frozen=True)
class Shape:
    """How the work of an iteration after the evaluation is divided.

    items : work-items per group
    chunk : atoms over which a group sums
    moved : atoms that a group moves; round : number of atoms moved at a time
    sharing : largest number of groups that share the preconditioner blocks of a chunk
    """

    items: int
    chunk: int
    moved: int
    round: int
    sharing: int

    @classmethod
    def of(cls, device: Device, n_atoms: int) -> Shape:
        if device.kind == "CPU":
            return cls(1, max(1024, -(-n_atoms // MOST_CHUNKS)), 1024, 16, 1)
        items = min(192, device.largest_group)
        atoms = 64  # one coordinate per work-item of such a group
        rounds = -(-n_atoms // (atoms * MOST_GROUPS))
        return cls(items, max(atoms, -(-n_atoms // MOST_CHUNKS)), rounds * atoms, atoms, MOST_SHARING)


class Method(ABC):
    """Minimization method for one structure: evaluation, sums over atoms, and step, all on the device.

    A method defines `init`, which sets the initial state of a structure, and `step`, the launches of an iteration after
    its evaluation. The launch `measure` computes the sums over atoms from which a step is decided;
    cl/minimize/state.clh. The step reads the state `before`, writes the state `after`, and moves `positions` from
    `base` or from their current values.

    history : pairs of vectors in `history`, (2 history, 3 n)
    each : typical number of evaluations per accepted step; holds_bonds : whether it supports constraints
    title : its name in messages

    arrays : arrays of a structure by name, including those of `own_arrays`
    free : (n,) 0 for frozen atoms, 1 for others
    begin : launches whose results are constant during a minimization
    evaluation : launches of an evaluation; both : launches of an iteration, for either buffer of the state
    builds : launches that build the preconditioner, for either buffer; empty without one
    cleared : names of arrays that are set to zero at the start of a round
    """

    history: ClassVar[int] = 0
    each: ClassVar[int] = 1
    holds_bonds: ClassVar[bool] = True
    title: ClassVar[str] = "this method"

    def __init__(
        self, passes: AnyPasses, queue: Binder, stopping: np.void, free: NDArray[np.bool_],
        constraints: BondConstraints | None = None, keeps_radii: bool = False,
    ) -> None:  # fmt: skip
        """Allocate the arrays and bind the launches.

        passes : energy passes with gradient; queue : makes arrays and binds launches
        stopping : Stopping of cl/minimize/state.clh; free : (n,) moving atoms
        keeps_radii : whether Born radii stay fixed at their initial values
        """
        n, real, coordinate = passes.n_atoms, queue.dtype, passes.encoding.dtype
        self.n_atoms, self.queue, self.stopping, self.passes = n, queue, stopping, passes
        self.fine = queue.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        self.shape = Shape.of(queue.device, n)
        self.n_chunks = -(-n // self.shape.chunk)
        self.state_size = N_STATE + 3 * self.history + 2 * self.history**2
        self._preconditioner = self.preconditioner_of(passes)
        sizes = {"base_gradient": 3 * n, "history": 6 * n * self.history, **self.own_arrays(n)}
        if self._preconditioner is not None:
            sizes["inverses"] = self._preconditioner.size
        self.arrays: dict[str, Array] = {
            "base": queue.zeros(3 * n, coordinate), "state": queue.zeros(self.state_size, self.fine),
            "next_state": queue.zeros(self.state_size, self.fine),
            **{name: queue.zeros(size, real) for name, size in sizes.items()},
        }  # fmt: skip
        self.begin: Sequence[Launch] = ()
        self.evaluation = passes.launches
        if keeps_radii:
            self.begin, self.evaluation = passes.apart_at_radii
        n_blocks = self._preconditioner.n_blocks if self._preconditioner else 0
        self.sharing = min(self.shape.sharing, -(-n_blocks // self.n_chunks))
        self.n_rows = self.history + 2 + self.sharing
        self.sums = queue.empty(4 * self.n_rows * self.n_chunks, self.fine)
        # P g and P y of a trial, kept between two launches, from two blocks per atom; 0 where there is only one.
        is_softened = ("softened", "changes") if self._preconditioner else ()
        self.softened: Arguments = {name: queue.zeros(6 * n) for name in is_softened}  # of Stepped
        self.free = queue.upload_each(free.astype(real))
        self.cleared: tuple[str, ...] = ()
        held = () if constraints is None else constraints.launches(passes, queue, self.arrays["base"], self.free)
        evaluated, stepped = held[:1], held[1:]  # launches after an evaluation and after a step
        either = ("state", "next_state"), ("next_state", "state")
        self._measuring: list[Launch] = []  # bound by `measure`
        self._moving: list[Launch] = []  # bound by `moving`
        self.both = [[*self.evaluation, *evaluated, *self._checked_step(*names), *stepped] for names in either]
        self.builds = self.builds_of()
        del self.passes  # no longer needed

    def own_arrays(self, n_atoms: int) -> Mapping[str, int]:
        """Reals per structure in the method's arrays, by name; initially zero."""
        return {}

    @classmethod
    def preconditioner_of(cls, passes: AnyPasses) -> Preconditioner | None:
        """Return the preconditioner of a molecule, or None."""
        return None

    @abstractmethod
    def init(self, state: NDArray[Any]) -> None:
        """Set the method's entries in a structure's initial state (state_size,), which is zero."""

    @abstractmethod
    def step(self, before: str, after: str) -> list[Launch]:
        """Bind the launches that follow an evaluation. before, after : names of the states"""

    def _checked_step(self, before: str, after: str) -> list[Launch]:
        """Return the launches of `step`. Raises PeleError if one needs sums that no earlier launch computes."""
        launches, has_sums = self.step(before, after), False
        measuring, moving = (set(map(id, bound)) for bound in (self._measuring, self._moving))
        for launch in launches:
            has_sums |= id(launch) in measuring
            if id(launch) in moving and not has_sums:
                raise PeleError(
                    f"{type(self).__name__}.step returns no self.measure() before {launch.kernel.name}, which "
                    "needs its sums; begin the list with it"
                )
        return launches

    def builds_of(self) -> list[Launch]:
        """Launches that build the preconditioner at `base`, for either buffer of the state."""
        return [self.build("base", state) for state in ("state", "next_state")] if self._preconditioner else []

    def build(self, positions: str, state: str) -> Launch:
        """Bind the launch that builds the preconditioner at the positions in a named array."""
        assert self._preconditioner is not None
        names = {"positions": positions, "state": state, "inverses": "inverses"}
        there = self.arrays | self.passes.named("positions")
        buffers = {"free": self.free, **{parameter: there[name] for parameter, name in names.items()}}
        return self._preconditioner.launch(self.passes, self.queue, buffers, self.shape.items, **self.macros)

    def measure(self) -> Launch:
        """Bind the launch of the sums over atoms at trial positions."""
        arguments = dict(step=self.passes.encoding.step, **self.counts, **self.blocks, **self.named(
            "free", "sums", "positions", "results", "base", "base_gradient", "history"))  # fmt: skip
        launch = self.bind(
            "minimize/measure.cl", "measure", (self.n_chunks, self.n_rows), arguments, width=self.block_width
        )
        self._measuring.append(launch)
        return launch

    def moving(self, file: str | Path, name: str, before: str, after: str, **arguments: Any) -> Launch:
        """Bind a kernel that accepts or rejects a trial step and moves atoms, with one group per `moved` atoms.

        It has the parameters of STEP in cl/minimize/method.clh, and further ones.
        """
        common = dict(
            n_atoms=self.n_atoms, **self.passes.result_sizes, moved=self.shape.moved, n_chunks=self.n_chunks,
            stopping=self.stopping, step=self.passes.encoding.step, before=self.arrays[before],
            after=self.arrays[after],
            **self.named("free", "sums", "positions", "results", "base", "base_gradient"),
        )  # fmt: skip
        n_groups = -(-self.n_atoms // self.shape.moved)
        launch = self.bind(file, name, (n_groups, 1), common | arguments, ROUND=self.shape.round)
        self._moving.append(launch)
        return launch

    def bind(
        self, file: str | Path, name: str, groups: tuple[int, int], arguments: Arguments, *, width: int = 1,
        **macros: int,
    ) -> Launch:  # fmt: skip
        """Bind a kernel for a number of groups.

        file : Path of any kernel file, or the name of a file in cl/; arguments : by parameter name
        """
        from ..opencl.building import kernel_file

        items = self.shape.items
        return self.queue.bind(
            kernel_file(file), name, (groups[0] * items, groups[1]), (items, 1), arguments, width=width,
            **self.macros, **macros,
        )  # fmt: skip

    @property
    def macros(self) -> dict[str, int]:
        """Build definitions of cl/minimize/state.clh and the files that it includes."""
        return {
            "M": self.history,
            "GROUP": self.shape.items,
            "PRECONDITIONED": int(self._preconditioner is not None),
            **({"BLOCK": BLOCK} if self._preconditioner else {}),
            **self.passes.encoding.macros,
            **self.passes.result_macros,
        }

    def named(self, *names: str) -> dict[str, Array]:
        """Return arrays by the names of kernel parameters, including positions and results of the passes."""
        there = self.arrays | self.passes.named("positions", "results") | {"free": self.free, "sums": self.sums}
        return {name: there[name] for name in names}

    @property
    def counts(self) -> Arguments:
        """Return the integers of Measured, cl/minimize/measure.clh."""
        names = self.passes.contents.names
        return dict(
            n_atoms=self.n_atoms, **self.passes.result_sizes, chunk_size=self.shape.chunk, n_chunks=self.n_chunks,
            sharing=self.sharing, counted=sum(1 << k for k, name in enumerate(PASS_TERMS) if name in names),
        )  # fmt: skip

    @property
    def blocks(self) -> Arguments:
        """Return the arguments of Preconditioner in cl/minimize/measure.clh."""
        if self._preconditioner is None:
            return {}
        n_blocks, order = self._preconditioner.n_blocks, self.queue.upload(self._preconditioner.order, np.int32)
        return dict(
            n_blocks=n_blocks, blocks_of_chunk=-(-n_blocks // self.n_chunks), order=order, **self.named("inverses"),
            **self.softened,
        )  # fmt: skip

    @property
    def block_width(self) -> int:
        """Reals in a vector of the kernels that use preconditioner blocks."""
        if self._preconditioner is None:
            return 1
        return block_width(self.queue.device, self.queue.precision, self.shape.items)

    def first_state(self, n_moving: int) -> NDArray[Any]:
        """Return the initial state of a structure. n_moving : number of moving atoms"""
        state = np.zeros(self.state_size, self.fine)
        state[StepState.MOVING], state[StepState.SHARE] = n_moving, 1
        self.init(state)
        return state
