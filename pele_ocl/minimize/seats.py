"""Structures in seats: what is kept of each while it is minimised, and launches that serve them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..energy.engine.system import encoded
from ..opencl.interface import N_STATE, StepState, Stop
from ..plan.pipeline import Pipeline
from .options import Stopping
from .preconditioner import BUILD_EVERY, is_due, until_due

if TYPE_CHECKING:
    from ..opencl.launch import BoundLaunch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue
    from ..opencl.timing import Event
    from .iteration import Iteration
    from .result import MinimizeResult

COUNTS = [StepState.ITERATIONS, StepState.EVALUATIONS]


@dataclass(eq=False)
class Seated:
    """A structure that is minimised, before, in and after a seat.

    number : among all that were asked for; pipeline : of its molecule
    stopping, rounds : its bounds, and how many rounds there are at most
    given : (n, 3) A, where it began; free : (n,) atoms that move
    start : (3 n) encoded, where its round begins; offset : (3,) A from where it is computed to where it is
    round : from 0; counted : iterations and evaluations of the rounds before
    each : evaluations that an accepted step takes, about
    evaluations : of its round, with all that are started; left : how many are to be started yet, about
    is_late : whether its time is over when it enters a seat
    state, final : (N_STATE,) and (n, 3) A in the end; seconds : until then, since the clock of its scheduler began
    result : MinimizeResult, or why there is none; "" before the scheduler knows
    """

    number: int
    stopping: Stopping
    rounds: int
    pipeline: Pipeline
    given: Floats
    free: NDArray[np.bool_]
    start: NDArray[Any]
    offset: Floats
    each: int = 1
    round: int = 0
    counted: Floats = field(default_factory=lambda: np.zeros(len(COUNTS)))
    evaluations: int = 0
    left: int = 1
    state: Floats = field(default_factory=lambda: np.zeros(N_STATE))
    final: Floats = field(default_factory=lambda: np.zeros(0))
    seconds: float = 0.0
    is_late: bool = False
    result: MinimizeResult | str = ""

    def first_state(self, iteration: Iteration) -> NDArray[Any]:
        """Make the state in which its round begins."""
        state = iteration.first_state(int(self.free.sum()))
        state[StepState.STOPPED] = Stop.TIME if self.is_late else Stop.RUNNING
        return state

    def __post_init__(self) -> None:
        self.left = self.left_of(0)

    def left_of(self, accepted: int) -> int:
        """Give the evaluations until its bound of iterations, after so many; the first is of where it begins."""
        return self.each * (self.stopping.max_iterations - accepted) + 1

    def look_at(self, state: Floats, behind: int) -> None:
        """Find what is left by a state (N_STATE,), behind which so many evaluations are started."""
        left = self.left_of(int(state[StepState.ITERATIONS])) - (state[StepState.EVALUATIONS] > 0)
        self.left = max(1, int(left)) - behind

    def end(self, base: NDArray[Any], state: Floats, seconds: float) -> None:
        """End the round where it stopped. base : (3 n) encoded positions; state : (N_STATE,)"""
        self.state, self.seconds = state.copy(), seconds
        self.state[COUNTS] += self.counted
        self.final = self.pipeline.decode(base[np.newaxis])[0] + self.offset
        self.final[~self.free] = self.given[~self.free]  # to the last digit
        if (sites := self.pipeline.atoms.virtual_sites) is not None:
            self.final = sites.placed(self.final, self.free)

    def goes_on(self, state: Floats) -> bool:
        """Tell if another round follows the one that ended with this state: it moved, and time is left."""
        moved = state[StepState.ITERATIONS] > 0 and state[StepState.STOPPED] != Stop.TIME
        return bool(moved) and self.round + 1 < self.rounds

    def begin_again(self) -> bool:
        """Begin the next round where the last one ended; False if that is nowhere."""
        found, offsets, errors = encoded(self.pipeline, self.final[np.newaxis])
        if errors:
            return False
        self.round, self.evaluations, self.counted = self.round + 1, 0, self.state[COUNTS]
        self.left = self.left_of(0)
        self.start, self.offset = found[0], offsets[0]
        return True


class Seats(ABC):
    """Seats of structures that are minimised by the same launches.

    structures : by seat; most : seats that there are; count : iterations so far
    """

    def __init__(
        self, queue: Queue, most: int, both: Sequence[list[BoundLaunch]], builds: Sequence[BoundLaunch],
        looked: NDArray[Any],
    ) -> None:  # fmt: skip
        """both, builds : as of `Iteration`; looked : memory of the host for the states of seats"""
        self.structures: list[Seated] = []
        self.most, self.count = most, 0
        self._queue, self._both, self._builds, self._looked = queue, both, builds, looked
        self._seen: Event | None = None  # when the states are there

    @abstractmethod
    def enter(self, structures: Sequence[Seated]) -> None:
        """Let structures begin their round."""

    def iterate(self, count: int) -> None:
        """Start so many iterations of all structures."""
        while count and self.structures:
            part = min(count, self._build())
            for _ in range(part):
                self._queue.launch_bound(self._both[self.count % 2], len(self.structures))
                self.count += 1
            for structure in self.structures:
                structure.evaluations += part
                structure.left -= part
            count -= part

    def _build(self) -> int:
        """Build the blocks of structures whose turn it is; give how many evaluations may follow."""
        if not self._builds:
            return BUILD_EVERY
        first, evaluations = 0, [structure.evaluations for structure in self.structures]
        for due, seats in groupby(is_due(count) for count in evaluations):
            n_seats = len(list(seats))
            if due:
                self._queue.launch_bound([self._builds[self.count % 2]], n_seats, first=first)
            first += n_seats
        return min(until_due(count) for count in evaluations)

    @property
    def state(self) -> str:
        """Name of the states as they are now."""
        return ("state", "next_state")[self.count % 2]

    def start_look(self) -> None:
        """Have the states read once all that was started until now is done."""
        n = len(self.structures)
        self._seen = self._queue.start_read(self._looked[:n], self._states()) if n else None

    @abstractmethod
    def _states(self) -> Buffer:
        """Give a buffer with the states, in the order of the seats."""

    def look(self) -> Floats:
        """Wait for the states, and give them as `start_look` found them, (n_seats, N_STATE)."""
        if self._seen is not None:
            self._queue.wait(self._seen)
        return self._looked[: len(self.structures), :N_STATE].astype(np.float64)

    @abstractmethod
    def bases(self, seats: Sequence[int]) -> Sequence[NDArray[Any]]:
        """Read the encoded positions (3 n) where structures that stopped are."""

    @abstractmethod
    def leave(self, seats: Sequence[int], ended: Sequence[Seated]) -> None:
        """Free seats; other structures may move there. ended : structures that begin no other round"""

    @property
    def is_at_work(self) -> bool:
        """Tell if the states that are asked for are not there yet, so that the host may prepare other structures."""
        return False


class PlanSeats(Seats):
    """Seats in the buffers of a plan, for conformations of its molecule."""

    def __init__(self, queue: Queue, pipeline: Pipeline, iteration: Iteration) -> None:
        super().__init__(queue, pipeline.batch, iteration.both, iteration.builds, iteration.looked)
        self._iteration, self._per_seat = iteration, iteration.per_seat

    def enter(self, structures: Sequence[Seated]) -> None:
        for structure in structures:
            seat, start = len(self.structures), structure.start
            state = structure.first_state(self._iteration)
            for name, values in (("positions", start), ("base", start), (self.state, state)):
                self._queue.write(self._per_seat[name][0], values, seat * len(values))
            for counter in self._iteration.counters if self._iteration.is_joined else ():
                self._queue.clear(counter)
            self._queue.launch_bound(self._iteration.begin, 1, first=seat)
            self.structures.append(structure)

    def _states(self) -> Buffer:
        return self._per_seat[self.state][0]

    def bases(self, seats: Sequence[int]) -> Sequence[NDArray[Any]]:
        found = [np.empty_like(self.structures[seat].start) for seat in seats]
        for seat, base in zip(seats, found, strict=True):
            self._queue.read(base, self._per_seat["base"][0], seat * len(base))
        return found

    def leave(self, seats: Sequence[int], ended: Sequence[Seated]) -> None:
        for seat in sorted(seats, reverse=True):
            last = self.structures.pop()
            if seat < len(self.structures):
                for buffer, size in self._per_seat.values():
                    self._queue.copy_part(buffer, size, len(self.structures), seat)
                self.structures[seat] = last
