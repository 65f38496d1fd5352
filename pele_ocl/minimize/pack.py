"""Molecules of different topologies in seats of the same launches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..energy import EnergyBatch
from ..energy.passes import EnergyPasses
from ..opencl.shared import N_STATE
from ..plan.evaluator import Failures
from .steps import Steps, build_in_turn

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.memory import Buffer
    from ..opencl.recording import Piece, RecordedLaunch, Region
    from ..opencl.run import Run
    from ..opencl.timing import Event
    from .minimizer import Minimizer

TABLE_BYTES = 64 << 10  # of a table at most: some devices have as much constant memory as any other


class Member:
    """A molecule as its minimiser would keep it on a device for itself, recorded; several seats may be of it."""

    def __init__(self, minimizer: Minimizer) -> None:
        from ..opencl.recording import Recorder

        energy = minimizer.energy
        self._recorder = Recorder(energy.device, energy.precision, profile=False)
        self.minimizer, self.pipeline = minimizer, energy._prepared(self._recorder, 1)
        passes = self.pipeline.passes
        assert isinstance(passes, EnergyPasses)
        self.passes, self.slot = passes, self._recorder.slot

    @cached_property
    def steps(self) -> Steps:
        """The steps behind each evaluation, recorded."""
        return self.minimizer.steps_of(self.passes)

    @cached_property
    def before(self) -> Piece:
        """A copy of the results of where a structure began."""
        return cast("Piece", self._recorder.empty(self.passes.n_results))

    @cached_property
    def region(self) -> Region:
        """The region of all that it keeps, which is recorded first."""
        _ = self.steps, self.before
        return self._recorder.region

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        """All there are, each once, in an order that is the same for molecules with the same key."""
        steps = self.steps
        found = dict.fromkeys([*steps.begin, *steps.both[0], *steps.both[1], *steps.builds])
        return cast("list[RecordedLaunch]", list(found))

    @cached_property
    def rows(self) -> list[tuple[NDArray[np.uint8], list[int]]]:
        """The rows of all launches."""
        return [launch.row(self.slot) for launch in self.launches]

    @cached_property
    def key(self) -> Hashable:
        """The same for molecules that can share all launches."""
        return tuple(launch.key for launch in self.launches)

    def piece(self, name: str) -> Piece:
        """Where a seat keeps something, by its name in `Steps.kept`."""
        return cast("Piece", self.steps.kept[name][0])

    @property
    def results(self) -> Piece:
        """Where an evaluation leaves its results."""
        return cast("Piece", self.passes.buffers["results"])


@dataclass(eq=False)
class Seated:
    """A structure in a seat.

    k : its number; given : (n, 3) A, where it began
    first : byte of the large buffer at which its region begins
    origin : (3 n) encoded `given`; encoded : its start, with bonds that were restored and those that are held in place
    aside : (3,) A from where it is computed to where it is; sent : what goes to the device in the end, and its event
    evaluations : those started included; state, final : (N_STATE,), (n, 3) A in the end; failures : of the end
    """

    member: Member
    k: int
    given: Floats
    origin: NDArray[Any]
    encoded: NDArray[Any]
    aside: Floats
    first: int = -1
    evaluations: int = 0
    state: Floats = field(default_factory=lambda: np.zeros(0))
    final: Floats = field(default_factory=lambda: np.zeros(0))
    sent: tuple[NDArray[Any], Event] | None = None
    failures: Failures = field(default_factory=lambda: Failures(1, record=True))

    def energies(self, results: NDArray[Any], positions: Floats) -> EnergyBatch:
        """The energies that results (n_results,) of positions (n, 3) A stand for."""
        return self.member.minimizer.energy._batch_of(self.member.pipeline, results, positions)


class Table:
    """The rows of a launch, one of each seat, and the launch that takes them."""

    def __init__(self, run: Run, launch: RecordedLaunch, row_size: int, large: Buffer, most: int) -> None:
        from ..opencl.launch import KeptLaunch

        self._rows = np.zeros((most, row_size), np.uint8)
        self._shapes = np.zeros((most, 2), np.int64)
        self._buffer = run.empty(self._rows.size, np.uint8)
        args: list[Argument] = [self._buffer, np.int32(row_size)]
        args += [large for arg in launch.args if not isinstance(arg, np.generic)]
        self.kept = KeptLaunch(run.device, launch.kernel, launch.shape, launch.group, tuple(args))

    def put(self, seat: int, launch: RecordedLaunch, row: tuple[NDArray[np.uint8], list[int]], first: int) -> None:
        """Fill the row of a seat whose region begins at byte `first`."""
        values, arrays = row
        self._rows[seat] = values
        self._rows[seat].view(np.uint64)[np.array(arrays, np.intp) // 8] += np.uint64(first)
        self._shapes[seat] = launch.shape

    def move(self, source: int, target: int) -> None:
        """Move a row to another seat."""
        self._rows[target], self._shapes[target] = self._rows[source], self._shapes[source]

    def send(self, run: Run, n_seats: int) -> tuple[NDArray[np.uint8], Event]:
        """Have the device read the rows of the first seats behind all that was launched; both are to be kept."""
        rows = self._rows[:n_seats].copy()
        x, y = self._shapes[:n_seats].max(axis=0).tolist()
        self.kept.shape = x, y
        return rows, run.start_write(self._buffer, rows.ravel())


class Pack:
    """Seats of structures whose molecules have one key: each launch is one for all of them.

    run : its launches wait in the queue of this run; large : the buffer of all regions
    """

    def __init__(self, run: Run, large: Buffer, member: Member) -> None:
        sizes = [len(row) for row, _ in member.rows]
        self.most = max(1, min(run.device.largest_constant, TABLE_BYTES) // max(sizes))
        self._run, self._large, self.seats = run, large, list[Seated]()
        self._tables = [
            Table(run, launch, size, large, self.most) for launch, size in zip(member.launches, sizes, strict=True)
        ]
        kept: dict[object, KeptLaunch] = {
            launch: table.kept for launch, table in zip(member.launches, self._tables, strict=True)
        }
        steps = member.steps
        self._begin = [kept[launch] for launch in (*steps.begin, *steps.evaluation)]
        self._both = [[kept[launch] for launch in launches] for launches in steps.both]
        self._builds = [kept[launch] for launch in steps.builds]
        self._states = run.empty(self.most * steps.state_size, steps.fine)
        self._looked = run.host_array((self.most, steps.state_size), steps.fine)
        self._sent: Sequence[object] = ()
        self._seen: Event | None = None
        self._count = 0

    def enter(self, structures: Sequence[Seated]) -> None:
        """Let structures begin whose regions are filled; the positions that were given are evaluated once before."""
        for structure in structures:
            member, seat = structure.member, len(self.seats)
            for table, launch, row in zip(self._tables, member.launches, member.rows, strict=True):
                table.put(seat, launch, row, structure.first)
            self.seats.append(structure)
        self._send()
        if not structures:
            return
        first = len(self.seats) - len(structures)
        self._run.launch_kept(self._begin, len(structures), first=first)
        for structure in structures:
            results, before = structure.member.results, structure.member.before
            self._copy(structure, results, self._large, structure.first + before.first)
        for seat, structure in enumerate(structures, first):
            if not np.array_equal(structure.origin, structure.encoded):
                values, piece = structure.encoded.view(np.uint8), structure.member.piece("positions")
                structure.sent = values, self._run.start_write(self._large, values, structure.first + piece.first)
                self._run.launch_kept(self._begin, 1, first=seat)

    def _send(self) -> None:
        """Have the device know who sits where."""
        if self.seats:
            self._sent = [table.send(self._run, len(self.seats)) for table in self._tables]

    def iterate(self, count: int) -> None:
        """Start so many iterations of all structures in seats."""
        while count and self.seats:
            n_seats, part = len(self.seats), count
            if self._builds:
                evaluations = [structure.evaluations for structure in self.seats]
                part = min(count, build_in_turn(self._run, self._builds[self._count % 2], evaluations))
            for _ in range(part):
                self._run.launch_kept(self._both[self._count % 2], n_seats)
                self._count += 1
            for structure in self.seats:
                structure.evaluations += part
            count -= part

    def start_look(self) -> None:
        """Have the states read once all that was started until now is done."""
        name = ("state", "next_state")[self._count % 2]
        for seat, structure in enumerate(self.seats):
            self._copy(structure, structure.member.piece(name), self._states, seat * self._looked[0].nbytes)
        if self.seats:
            self._seen = self._run.start_read(self._looked[: len(self.seats)], self._states)

    def _copy(self, structure: Seated, piece: Piece, target: Buffer, to: int) -> None:
        """Copy what a seat keeps to another place on the device."""
        self._run.copy_bytes(self._large, structure.first + piece.first, target, to, piece.size)

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
        self._run.launch_kept(self._begin, 1, first=seat)

    def leave(self, seat: int) -> None:
        """Let the structure of a seat go, into which the last one moves. `enter` tells the device of it."""
        last = len(self.seats) - 1
        for table in self._tables:
            table.move(last, seat)
        self.seats[seat] = self.seats[last]
        self.seats.pop()
