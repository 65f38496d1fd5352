"""Molecules of different topologies in seats of the same launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..energy import EnergyBatch
from ..engine.launching import Tables
from ..engine.system import System
from ..opencl.shared import N_STATE
from ..plan.evaluator import Failures
from .steps import Steps, build_in_turn

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.recording import Piece, RecordedLaunch
    from ..opencl.run import Run
    from ..opencl.timing import Event
    from .minimizer import Minimizer

CAPACITY = 1024  # seats of a pack


class Member(System):
    """A molecule as its minimiser would keep it on a device for itself, recorded."""

    def __init__(self, minimizer: Minimizer, free: NDArray[np.bool_] | None = None) -> None:
        """free : (n,) atoms that move, where not all do though all of their energies are computed"""
        super().__init__(minimizer.energy)
        self.minimizer = minimizer
        if free is not None:
            minimizer._keep_in_place(~free)

    @cached_property
    def steps(self) -> Steps:
        """The steps behind each evaluation, recorded."""
        return self.minimizer._steps_of(self.passes)

    @cached_property
    def before(self) -> Piece:
        """A copy of the results of where a structure began."""
        return cast("Piece", self.recorder.empty(self.passes.n_results))

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        steps, _ = self.steps, self.before
        found = dict.fromkeys([*steps.begin, *steps.both[0], *steps.both[1], *steps.builds])
        return cast("list[RecordedLaunch]", list(found))

    @property
    def size(self) -> int:
        """Bytes of all that it keeps."""
        return self.shared.size + self.own.size

    def kept(self, name: str) -> Piece:
        """Where a seat keeps something, by its name in `Steps.kept`."""
        return cast("Piece", self.steps.kept[name][0])


@dataclass(eq=False)
class Seated:
    """A structure in a seat.

    k : its number; given : (n, 3) A, where it began
    first : byte of the large buffer at which its regions begin; slot : of the pack's tables
    origin : (3 n) encoded `given`; encoded : its start, with bonds that were restored and those that are held in place
    aside : (3,) A from where it is computed to where it is; sent : what goes to the device in the end, and its event
    initial : what else it has of its own in buffers of the passes
    evaluations : those started included; state, final : (N_STATE,), (n, 3) A in the end; failures : of the end
    """

    member: Member
    k: int
    given: Floats
    origin: NDArray[Any]
    encoded: NDArray[Any]
    aside: Floats
    first: int = -1
    slot: int = -1
    initial: Sequence[tuple[str, NDArray[Any]]] = ()
    evaluations: int = 0
    state: Floats = field(default_factory=lambda: np.zeros(0))
    final: Floats = field(default_factory=lambda: np.zeros(0))
    sent: tuple[NDArray[Any], Event] | None = None
    failures: Failures = field(default_factory=lambda: Failures(1, record=True))

    def energies(self, results: NDArray[Any], positions: Floats) -> EnergyBatch:
        """The energies that results (n_results,) of positions (n, 3) A stand for."""
        return self.member.energies(results[np.newaxis], positions[np.newaxis])

    @property
    def own(self) -> int:
        """The byte at which what it has of its own begins."""
        return self.first + self.member.shared.size


class Pack:
    """Seats of structures whose molecules have one key: each launch is one for all of them.

    run : its launches wait in the queue of this run; large : the buffer of all regions
    """

    def __init__(self, run: Run, large: Buffer, member: Member) -> None:
        self.most = CAPACITY
        self._run, self._large, self.seats = run, large, list[Seated]()
        self._tables = tables = Tables(run, large, member.launches, member.rows, self.most)
        self._free = list(range(self.most))[::-1]  # slots of the tables
        steps = member.steps
        self._begin = tables.kept([*steps.begin, *steps.evaluation])
        self._both = [tables.kept(launches) for launches in steps.both]
        self._builds = tables.kept(steps.builds)
        self._states = run.empty(self.most * steps.state_size, steps.fine)
        self._looked = run.host_array((self.most, steps.state_size), steps.fine)
        self._seen: Event | None = None
        self._count = 0

    def enter(self, structures: Sequence[Seated]) -> None:
        """Let structures begin whose regions are filled; the positions that were given are evaluated once before."""
        for structure in structures:
            structure.slot = self._free.pop()
            slots, own = np.array([structure.slot], np.intp), np.array([structure.own], np.uint64)
            self._tables.put(slots, structure.member.rows, structure.first, own)
            self.seats.append(structure)
        self._tables.send(np.array([structure.slot for structure in self.seats], np.int32))
        first = len(self.seats) - len(structures)
        self._tables.launch(self._begin, len(structures), first)
        for structure in structures:
            results, before = structure.member.piece("results"), structure.member.before
            self._copy(structure, results, self._large, structure.own + before.first)
        for seat, structure in enumerate(structures, first):
            if not np.array_equal(structure.origin, structure.encoded):
                values, piece = structure.encoded.view(np.uint8), structure.member.kept("positions")
                structure.sent = values, self._run.start_write(self._large, values, structure.own + piece.first)
                self._tables.launch(self._begin, 1, seat)

    def iterate(self, count: int) -> None:
        """Start so many iterations of all structures in seats."""
        while count and self.seats:
            n_seats, part = len(self.seats), count
            if self._builds:
                evaluations = [structure.evaluations for structure in self.seats]
                part = min(count, build_in_turn(self._run, self._builds[self._count % 2], evaluations))
            for _ in range(part):
                self._tables.launch(self._both[self._count % 2], n_seats)
                self._count += 1
            for structure in self.seats:
                structure.evaluations += part
            count -= part

    def start_look(self) -> None:
        """Have the states read once all that was started until now is done."""
        name = ("state", "next_state")[self._count % 2]
        for seat, structure in enumerate(self.seats):
            self._copy(structure, structure.member.kept(name), self._states, seat * self._looked[0].nbytes)
        if self.seats:
            self._seen = self._run.start_read(self._looked[: len(self.seats)], self._states)

    def _copy(self, structure: Seated, piece: Piece, target: Buffer, to: int) -> None:
        """Copy what a seat keeps to another place on the device."""
        self._run.copy_bytes(self._large, structure.own + piece.first, target, to, piece.size)

    @property
    def is_at_work(self) -> bool:
        """Whether the states that are asked for are not there yet."""
        return self._seen is not None and not self._run.has_come(self._seen)

    def look(self) -> Floats:
        """The states of all seats as `start_look` found them, (n_seats, N_STATE)."""
        if self._seen is not None:
            self._run.wait(self._seen)
        return self._looked[: len(self.seats), :N_STATE].astype(np.float64)

    def evaluate(self, seat: int) -> None:
        """Start an evaluation of the positions in a seat."""
        self._tables.launch(self._begin, 1, first=seat)

    def leave(self, seat: int) -> None:
        """Let the structure of a seat go, into which the last one moves. `enter` tells the device of it."""
        self._free.append(self.seats[seat].slot)
        self.seats[seat] = self.seats[-1]
        self.seats.pop()
