"""Structures in seats: what is kept of each while it is minimised, and launches that serve them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..engine.system import encoded
from ..errors import InputError
from ..opencl.interface import N_STATE, StepState, Stop
from ..plan.pipeline import Pipeline

if TYPE_CHECKING:
    from ..opencl.queue import Queue
    from .iteration import Iteration
    from .minimizer import Minimizer
    from .result import MinimizeResult

COUNTS = [StepState.ITERATIONS, StepState.EVALUATIONS]


@dataclass(eq=False)
class Seated:
    """A structure that is minimised, before, in and after a seat.

    number : among all that were asked for; minimizer, pipeline : of its molecule
    given : (n, 3) A, where it began; free : (n,) atoms that move
    start : (3 n) encoded, where its round begins; offset : (3,) A from where it is computed to where it is
    round : from 0; counted : iterations and evaluations of the rounds before
    evaluations : of its round, with all that are started
    is_late : whether its time is over when it enters a seat
    state, final : (N_STATE,) and (n, 3) A in the end; seconds : until then, since the clock of its scheduler began
    result : MinimizeResult, or why there is none; "" before the scheduler knows
    """

    number: int
    minimizer: Minimizer
    pipeline: Pipeline
    given: Floats
    free: NDArray[np.bool_]
    start: NDArray[Any]
    offset: Floats
    round: int = 0
    counted: Floats = field(default_factory=lambda: np.zeros(len(COUNTS)))
    evaluations: int = 0
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

    def end(self, base: NDArray[Any], state: Floats, seconds: float) -> None:
        """End the round where it stopped. base : (3 n) encoded positions; state : (N_STATE,)"""
        self.state, self.seconds = state.copy(), seconds
        self.state[COUNTS] += self.counted
        self.final = self.pipeline.decode(base[np.newaxis])[0] + self.offset
        self.final[~self.free] = self.given[~self.free]  # to the last digit

    def goes_on(self, state: Floats) -> bool:
        """Tell if another round follows the one that ended with this state: it moved, and time is left."""
        moved = state[StepState.ITERATIONS] > 0 and state[StepState.STOPPED] != Stop.TIME
        return bool(moved) and self.round + 1 < self.minimizer.rounds

    def begin_again(self) -> bool:
        """Begin the next round where the last one ended; False if that is nowhere."""
        found, offsets, errors = encoded(self.pipeline, self.final[np.newaxis])
        if errors:
            return False
        self.round, self.evaluations, self.counted = self.round + 1, 0, self.state[COUNTS]
        self.start, self.offset = found[0], offsets[0]
        return True


class Seats(ABC):
    """Seats of structures that are minimised by the same launches.

    structures : by seat; most : seats that there are
    """

    most: int

    def __init__(self) -> None:
        self.structures: list[Seated] = []

    @abstractmethod
    def enter(self, structures: Sequence[Seated]) -> None:
        """Let structures begin their round."""

    def iterate(self, count: int) -> None:
        """Start so many iterations of all structures."""
        while count and self.structures:
            part = min(count, self._prepare([structure.evaluations for structure in self.structures]))
            self._iterate(part)
            for structure in self.structures:
                structure.evaluations += part
            count -= part

    @abstractmethod
    def _prepare(self, evaluations: Sequence[int]) -> int:
        """Start what is due after so many evaluations of each; give how many iterations may follow."""

    @abstractmethod
    def _iterate(self, count: int) -> None:
        """Start so many iterations of all structures; there are some."""

    @abstractmethod
    def start_look(self) -> None:
        """Have the states read once all that was started until now is done."""

    @abstractmethod
    def look(self) -> Floats:
        """Wait for the states, and give them as `start_look` found them, (n_seats, N_STATE)."""

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

    def _vacate(self, seat: int) -> int:
        """Put the last structure into a seat, and give the seat that it had."""
        last = len(self.structures) - 1
        self.structures[seat] = self.structures[last]
        self.structures.pop()
        return last


class PlanSeats(Seats):
    """Seats in the buffers of a plan, for conformations of its molecule."""

    def __init__(self, queue: Queue, pipeline: Pipeline, iteration: Iteration) -> None:
        super().__init__()
        self.most = pipeline.batch
        self._queue, self._iteration = queue, iteration

    def enter(self, structures: Sequence[Seated]) -> None:
        for structure in structures:
            state = structure.first_state(self._iteration)
            self._iteration.load(self._queue, len(self.structures), structure.start, state)
            self.structures.append(structure)

    def _prepare(self, evaluations: Sequence[int]) -> int:
        return self._iteration.prepare(self._queue, evaluations)

    def _iterate(self, count: int) -> None:
        self._iteration.iterate(self._queue, len(self.structures), count)

    def start_look(self) -> None:
        if self.structures:
            self._iteration.start_look(self._queue, len(self.structures))

    def look(self) -> Floats:
        if not self.structures:
            return np.zeros((0, N_STATE))
        return self._iteration.look(self._queue, len(self.structures)).astype(np.float64)

    def bases(self, seats: Sequence[int]) -> Sequence[NDArray[Any]]:
        return [self._iteration.positions(self._queue, seat) for seat in seats]

    def leave(self, seats: Sequence[int], ended: Sequence[Seated]) -> None:
        for seat in sorted(seats, reverse=True):
            last = self._vacate(seat)
            if seat < last:
                self._iteration.move(self._queue, last, seat)


def seated(
    minimizer: Minimizer, pipeline: Pipeline, given: Floats, free: Sequence[NDArray[np.bool_]]
) -> tuple[list[Seated], dict[int, InputError]]:
    """Make structures that begin at positions (m, n, 3) A, and find why others cannot, by their numbers from 0.

    free : of each, (n,) atoms that move
    """
    starts, errors = np.array(given, np.float64), dict[int, InputError]()
    for k, (positions, moves) in enumerate(zip(given, free, strict=True)):
        try:
            minimizer._check_start(positions, moves)
            starts[k] = minimizer._placed(positions, moves)
        except InputError as error:
            errors[k] = error
    found, offsets, far = encoded(pipeline, starts)
    errors = {**{k: InputError(reason) for k, reason in far.items()}, **errors}
    good = (k for k in range(len(given)) if k not in errors)
    return [Seated(k, minimizer, pipeline, given[k], free[k], found[k], offsets[k]) for k in good], errors
