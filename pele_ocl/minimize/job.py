"""Structures that are minimized, and how their molecule is prepared for that on a device."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.errors import InputError
from ..energy.engine.launching import key_of
from ..energy.engine.system import System
from ..opencl.interface import N_STATE, StepState, Stop
from .options import Stopping
from .protocol import Protocol
from .result import REASONS, MinimizeResult

if TYPE_CHECKING:
    from ..energy import Energy, EnergyBatch
    from ..opencl.recording import ArgumentRow, BufferPiece, RecordedLaunch, Recorder

COUNTS = [StepState.ITERATIONS, StepState.EVALUATIONS]
FREE = "free"  # names the atoms that move

Own = Mapping[str, NDArray[Any]]  # values (m, size) of structures, by the names of buffers


class Recipe:
    """A molecule prepared for minimization on a device: its launches, and what is kept of each of its structures.

    system : the molecule, whose rows have positions and results
    recorder : of what the minimizer keeps: the molecule's own, or one apart from it if the rows stay where they are
    method : the launches of an iteration, recorded; real : the type of reals
    """

    def __init__(self, system: System, protocol: Protocol, is_resident: bool = False) -> None:
        """is_resident : whether rows are in a store of others, so that only what the minimizer keeps is brought"""
        self.system, self.protocol, self.is_resident = system, protocol, is_resident
        self.recorder: Recorder = system.recorder
        if is_resident:
            _ = system.rows  # which lays out what the rows have
            from ..opencl.recording import Recorder

            self.recorder = Recorder(
                system.energy.device, system.energy.precision, is_shared=system.recorder.is_shared,
                store=1,
            )  # fmt: skip
        passes = system.passes
        self.method = protocol.method(
            passes, self.recorder, protocol.stopping.packed(system.energy.precision), protocol.free,
            protocol.constraints, not passes.options.chain,
        )  # fmt: skip
        self._pieces: dict[str, BufferPiece] = {}  # by name, as they were asked for
        self._states: dict[int, NDArray[Any]] = {}  # in which rounds begin, by how many atoms move
        self.real = np.dtype(system.energy.precision)
        self.before = self.recorder.empty(passes.n_results)  # results of where a structure began

    @classmethod
    def of(cls, protocol: Protocol, energy: Energy, is_alone: bool = False) -> Recipe:
        """Prepare a molecule whose structures are brought to the device. is_alone : one at a time, by itself"""
        return cls(System(energy, is_alone=is_alone), protocol)

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        """Give all launches, each once, in an order that is the same for molecules with the same key."""
        of = self.method
        listed = [*of.begin, *of.evaluation, *of.both[0], *of.both[1], *of.builds]
        return self.recorder.recorded(listed)

    @cached_property
    def rows(self) -> list[ArgumentRow]:
        """Give the arguments of all launches."""
        for recorder in (self.system.recorder, self.recorder):
            _ = recorder.shared, recorder.own  # which lay out the arrays
        return [launch.row(self.recorder.slot) for launch in self.launches]

    @cached_property
    def key(self) -> Hashable:
        """Give a key that is equal for molecules that can share all launches."""
        return key_of(self.launches) if self.recorder.is_shared else id(self)

    @property
    def size(self) -> int:
        """Bytes of all that a structure takes, with what it shares."""
        return self.recorder.shared.size + self.recorder.own.size

    def first_state(self, n_moving: int) -> NDArray[Any]:
        """Make the state of a structure that begins. n_moving : atoms that move"""
        if n_moving not in self._states:
            self._states[n_moving] = self.method.first_state(n_moving)
        return self._states[n_moving].copy()

    def piece(self, name: str) -> BufferPiece:
        """Give where something is kept: FREE, or a name of `Method.arrays` or of buffers of the passes."""
        if name not in self._pieces:
            there = {**self.system.passes.buffers, **self.method.arrays, FREE: self.method.free}
            self._pieces[name] = self.recorder.piece(there[name])
        return self._pieces[name]

    def jobs(
        self, numbers: Sequence[int], given: Floats, free: Sequence[NDArray[np.bool_]] | None = None,
        encoded: NDArray[Any] | None = None, offsets: Floats | None = None, firsts: NDArray[np.uint64] | None = None,
    ) -> tuple[list[Job], dict[int, InputError]]:  # fmt: skip
        """Make structures of these numbers that begin at positions (m, n, 3) A, and find why others cannot.

        free : of each, (n,) atoms that move, by default all that the protocol moves
        encoded, offsets, firsts : of rows that stay where they are: `given` as on the device, how far each is from
            where it is computed, and the first byte of each
        """
        given = np.asarray(given, np.float64)
        sites = self.protocol.atoms.is_site
        masks = [moves & ~sites for moves in ([self.protocol.free] * len(given) if free is None else free)]
        starts, errors = self.protocol.starts(given, masks)
        far: dict[int, str] = {}
        if encoded is None or offsets is None:
            encoded, offsets, far = self.system.encoded(given)
        begin, begin_offsets = encoded, offsets
        if len(moved := np.flatnonzero((starts != given).any(axis=(1, 2)))):  # all others keep their bits
            begin, begin_offsets = encoded.copy(), offsets.copy()
            begin[moved], begin_offsets[moved], reasons = self.system.encoded(starts[moved])
            far |= {int(moved[k]): reason for k, reason in reasons.items()}
        errors = {**{k: InputError(reason) for k, reason in far.items()}, **errors}
        found = [
            Job(
                numbers[k], self, given[k], masks[k], encoded[k], begin[k], begin_offsets[k],
                first=-1 if firsts is None else int(firsts[k]),
            )
            for k in range(len(given)) if k not in errors
        ]  # fmt: skip
        return found, {numbers[k]: error for k, error in errors.items()}


@dataclass(eq=False)
class Job:
    """A structure that is minimized, before, in and after its seat.

    number : among all that were asked for; recipe : of its molecule
    given : (n, 3) A, where it began; free : (n,) atoms that move
    origin, start : (3 n) encoded, `given` and where its round begins
    offset : (3,) A from where it is computed to where it is
    first : byte of its row in the store of rows; scratch : of what the minimizer keeps; slot : while it has a seat
    round : from 0; counted : iterations and evaluations of the rounds before
    evaluations : of its round, with all that are started; left : how many are to be started yet, about
    is_late : whether its time is over when it enters a seat
    state, final : (N_STATE,) and (n, 3) A in the end; seconds : until then, since the clock of its driver began
    result : MinimizeResult, or why there is none; "" before the driver knows
    """

    number: int
    recipe: Recipe
    given: Floats
    free: NDArray[np.bool_]
    origin: NDArray[Any]
    start: NDArray[Any]
    offset: Floats
    first: int = -1
    scratch: int = -1
    slot: int = -1
    round: int = 0
    counted: Floats = field(default_factory=lambda: np.zeros(len(COUNTS)))
    evaluations: int = 0
    left: int = 1
    state: Floats = field(default_factory=lambda: np.zeros(N_STATE))
    final: Floats = field(default_factory=lambda: np.zeros(0))
    seconds: float = 0.0
    is_late: bool = False
    result: MinimizeResult | str = ""

    def __post_init__(self) -> None:
        self.left = self.left_of(0)

    @property
    def stopping(self) -> Stopping:
        """Bounds at which it ends."""
        return self.recipe.protocol.stopping

    @property
    def is_moved(self) -> bool:
        """Tell if it does not begin where it was given: its bonds are restored, or held at their lengths."""
        return self.origin is not self.start and not np.array_equal(self.origin, self.start)

    def place(self, piece: BufferPiece) -> int:
        """Give the byte of its store at which it keeps something."""
        return (self.scratch if piece.store or not self.recipe.is_resident else self.first) + piece.first

    def first_state(self) -> NDArray[Any]:
        """Make the state in which its round begins."""
        state = self.recipe.first_state(int(self.free.sum()))
        state[StepState.STOPPED] = Stop.TIME if self.is_late else Stop.RUNNING
        return state

    def left_of(self, accepted: int) -> int:
        """Give the evaluations until its bound of iterations, after so many; the first is of where it begins."""
        return self.recipe.protocol.method.each * (self.stopping.max_iterations - accepted) + 1

    def look_at(self, state: Floats, behind: int) -> None:
        """Find what is left from a state (N_STATE,), after which so many evaluations were started already."""
        left = self.left_of(int(state[StepState.ITERATIONS])) - (state[StepState.EVALUATIONS] > 0)
        self.left = max(1, int(left)) - behind

    def end(self, base: NDArray[Any], state: Floats, seconds: float) -> None:
        """End the round where it stopped. base : (3 n) encoded positions; state : (N_STATE,)"""
        self.state, self.seconds, self.start = state.copy(), seconds, base
        self.state[COUNTS] += self.counted
        self.final = self.recipe.system.pipeline.decode(base[np.newaxis])[0] + self.offset
        self.final[~self.free] = self.given[~self.free]  # to the last digit
        if (sites := self.recipe.protocol.atoms.virtual_sites) is not None:
            self.final = sites.placed(self.final, self.free)

    def goes_on(self) -> bool:
        """Tell if another round follows the one that ended: it moved, and time is left."""
        moved = self.state[StepState.ITERATIONS] > self.counted[0] and self.state[StepState.STOPPED] != Stop.TIME
        return bool(moved) and self.round + 1 < self.recipe.protocol.rounds

    def result_of(self, before: EnergyBatch, after: EnergyBatch, k: int) -> MinimizeResult:
        """Give the result when it has ended. before, after : energies in which it is conformation k"""
        assert after.gradients is not None
        protocol, state = self.recipe.protocol, self.state
        gradient = protocol.along(after.gradients[k], self.final, self.free)
        moved = self.final - self.given
        return MinimizeResult(
            atoms=protocol.atoms.moved(self.final),
            energy_before=before.terms[k],
            energy_after=after.terms[k],
            gradient=gradient,
            rms_gradient=float(np.sqrt((gradient**2).sum() / self.free.sum())),
            largest_gradient=float(np.sqrt((gradient**2).sum(axis=1).max())),
            iterations=int(state[StepState.ITERATIONS]),
            evaluations=int(state[StepState.EVALUATIONS]),
            stopped_by=REASONS[int(state[StepState.STOPPED]) - 1],
            restored=protocol.n_restored(self.given),
            rms_displacement=float(np.sqrt((moved**2).sum(axis=1).mean())),
            seconds=self.seconds,
        )

    def begin_again(self) -> None:
        """Begin the next round where the last one ended."""
        self.round, self.evaluations, self.counted = self.round + 1, 0, self.state[COUNTS]
        self.left = self.left_of(0)
