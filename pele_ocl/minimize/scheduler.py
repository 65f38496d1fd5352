"""Scheduler of minimisation: who is minimised at a time, for how many rounds, and until when."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..opencl.interface import StepState, Stop
from ..plan.pipeline import Pipeline
from .seats import PlanSeats, Seated, Seats

if TYPE_CHECKING:
    from ..opencl.queue import Queue
    from .iteration import Iteration

LEAST_LOOK, MOST_LOOK = 4, 32  # iterations after which the host looks which conformations of a plan are done
MOST_READY = 8  # structures that wait on the device for a seat

_NO_MORE: Sequence[Seated] = ()

Structures = Iterator[Sequence[Seated] | None]  # as they are prepared; None between two parts of that work


class Scheduler(ABC):
    """Structures on their way through seats. Each gets the bits that it gets alone, in any company and order.

    The host looks at their states from time to time: structures that are done make room for others. The states are read
    some iterations before, `ahead`, so that the device is at work while the host looks. Where all may be done by then,
    none come behind.

    seats : that there are; limit : seconds after which all structures end where they are, None for no limit
    looks : at the states so far
    largest_rms : root mean square gradient, the largest of the structures in seats, kcal/mol/A
    """

    ahead = 1

    def __init__(self, queue: Queue, limit: float | None = None) -> None:
        self._queue = queue
        self.begin(limit)

    def begin(self, limit: float | None) -> None:
        """Start the clock, for other structures than before."""
        self.limit, self.looks, self.largest_rms = limit, 0, 0.0
        self._clock = time.perf_counter()
        self._behind = 0  # iterations that were started behind the last look
        self._more = True  # whether structures may come that are not ready yet
        self._next: Sequence[Seated] = ()  # that come as soon as there is room
        self._ready: deque[Seated] = deque()
        self._ended: list[Seated] = []

    @property
    @abstractmethod
    def seats(self) -> Iterable[Seats]:
        """All seats that there are."""

    @property
    def n_seated(self) -> int:
        """Structures that are minimised at the moment."""
        return sum(len(seats.structures) for seats in self.seats)

    def __bool__(self) -> bool:
        """Tell if any structure is under way, or may come."""
        return bool(self._more or self._next or self._ready or self._ended or self.n_seated)

    def minimized(self, structures: Structures) -> Iterator[list[Seated]]:
        """Minimise structures, and give them when they are done, in any order, some or none at a time.

        The device is at work whenever this gives something, but for the last time.
        """
        done: list[Seated] = []
        self._fill(structures)
        while self:
            self._start()
            self._fill(structures)
            yield done
            done = self._look()
        yield done

    def _fill(self, structures: Structures) -> None:
        """Make the next structures ready, a part of that work at least; more until one is, or the device waits."""
        while len(self._ready) < MOST_READY:
            if not self._next:
                batch = next(structures, _NO_MORE)
                if batch is _NO_MORE:
                    self._more = False
                    return
                self._next = batch or ()
            if self._next:
                count = self._bring(self._next)
                self._ready.extend(self._next[:count])
                self._next = self._next[count:]
                if self._next:
                    return
            if (self._ready or self.n_seated) and not any(seats.is_at_work for seats in self.seats):
                return

    @abstractmethod
    def _bring(self, structures: Sequence[Seated]) -> int:
        """Bring what structures have to the device; give how many of them, the first ones, had room there."""

    @abstractmethod
    def _seats_for(self, structure: Seated) -> Seats:
        """Give the seats where a structure can be."""

    @abstractmethod
    def _count(self) -> int:
        """Give the iterations until the next look, more than `ahead`."""

    def _start(self) -> None:
        """Let in who is ready, and start some iterations of all structures in seats."""
        self._enter()
        there, count = list(self.seats), self._count()
        left = max((structure.left for seats in there for structure in seats.structures), default=0)
        self._behind = self.ahead if left > count else 0
        for seats in there:
            seats.iterate(min(count, max(left, 0)) - self._behind)
        for seats in there:
            seats.start_look()
        for seats in there:
            seats.iterate(self._behind)
        self._queue.submit()

    def _enter(self) -> None:
        """Let in who is ready, as far as there are seats."""
        entering: dict[int, tuple[Seats, list[Seated]]] = {}
        waiting: deque[Seated] = deque()
        for structure in self._ready:
            structure.is_late = self._is_late
            seats = self._seats_for(structure)
            _, own = entering.setdefault(id(seats), (seats, []))
            (own if len(seats.structures) + len(own) < seats.most else waiting).append(structure)
        self._ready = waiting
        for seats, own in entering.values():
            if own:
                seats.enter(own)

    @property
    def _is_late(self) -> bool:
        return self.limit is not None and self._now > self.limit

    @property
    def _now(self) -> float:
        """Seconds of the clock."""
        return time.perf_counter() - self._clock

    def _look(self) -> list[Seated]:
        """Wait for the states, let go who is done, and give the structures that were done at the look before."""
        ended, self._ended, self.largest_rms = self._ended, [], 0.0
        self.looks += 1
        is_late = self._is_late
        for seats in self.seats:
            states = self._states(seats, is_late)
            for structure, state in zip(seats.structures, states, strict=True):
                structure.look_at(state, self._behind)
            goes_on = states[:, StepState.STOPPED] == Stop.RUNNING
            mean2 = states[goes_on, StepState.GRADIENT2] / states[goes_on, StepState.MOVING]
            self.largest_rms = max(self.largest_rms, float(np.sqrt(mean2.max(initial=0.0))))
            if not goes_on.all():
                self._let_go(seats, np.flatnonzero(~goes_on).tolist(), states)
        self._queue.submit()
        if ended and not self.n_seated:
            self._queue.finish()
        self._finish(ended)
        return ended

    def _states(self, seats: Seats, is_late: bool) -> Floats:
        """Return the states of seats (n_seats, N_STATE). is_late : True if all structures end now"""
        states = seats.look()
        if is_late and len(states):
            seats.start_look()  # anew, behind the iterations that were at work meanwhile
            states = seats.look()
            states[states[:, StepState.STOPPED] == Stop.RUNNING, StepState.STOPPED] = Stop.TIME
            for k, structure in enumerate(seats.structures):
                structure.stopping.judge(states[k : k + 1])
        return states

    def _let_go(self, seats: Seats, stopped: list[int], states: Floats) -> None:
        """Free seats of structures whose rounds are over; some begin another round."""
        structures, again, end = [seats.structures[seat] for seat in stopped], list[Seated](), list[Seated]()
        for structure, base, state in zip(structures, seats.bases(stopped), states[stopped], strict=True):
            structure.end(base, state, self._now)
            (again if structure.goes_on(state) and structure.begin_again() else end).append(structure)
        self._place(again, end)
        seats.leave(stopped, end)
        self._ready.extend(again)
        self._ended += end

    @abstractmethod
    def _place(self, again: Sequence[Seated], end: Sequence[Seated]) -> None:
        """Bring what changed of structures that begin another round, or that end, to the device."""

    @abstractmethod
    def _finish(self, ended: Sequence[Seated]) -> None:
        """Take what the device has of structures that ended at the look before."""


class PlanScheduler(Scheduler):
    """Conformations of one molecule in the buffers of its plan."""

    def __init__(
        self, queue: Queue, pipeline: Pipeline, iteration: Iteration, limit: float | None, begin: float
    ) -> None:
        """begin : of the clock, by time.perf_counter()"""
        super().__init__(queue, limit)
        self._clock = begin
        self._seats = PlanSeats(queue, pipeline, iteration)
        self._iterations = 0

    @property
    def seats(self) -> Iterable[Seats]:
        return (self._seats,)

    def _bring(self, structures: Sequence[Seated]) -> int:
        return len(structures)

    def _seats_for(self, structure: Seated) -> Seats:
        return self._seats

    def _count(self) -> int:
        """About a sixteenth of all iterations before."""
        count = LEAST_LOOK if self._is_late else min(MOST_LOOK, max(LEAST_LOOK, self._iterations // 16))
        self._iterations += count
        return count

    def _place(self, again: Sequence[Seated], end: Sequence[Seated]) -> None:
        """Do nothing: a seat takes positions when a structure enters it."""

    def _finish(self, ended: Sequence[Seated]) -> None:
        """Do nothing: the plan computes all energies in the end."""
