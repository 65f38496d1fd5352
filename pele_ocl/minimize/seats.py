"""Seats of structures that are minimized by the same launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..energy.engine.copies import WORD, Copies
from ..energy.engine.launching import Alone, Tables
from ..opencl.interface import N_STATE
from .preconditioner import BUILD_EVERY, is_due, until_due

if TYPE_CHECKING:
    from ..energy.engine.launching import Begins
    from ..energy.engine.store import Store
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue
    from ..opencl.transfers import Event
    from .job import Job, Recipe

CAPACITY = 1024  # seats of one kind


class Seats:
    """Seats of structures whose molecules have one key: each launch is one for all of them.

    jobs : the structures by seat; most : seats that there are; count : iterations so far
    both : launches of an iteration, for either buffer of the states; begin : of an evaluation from the beginning
    """

    def __init__(
        self, queue: Queue, copies: Copies, own_copies: Copies, stores: Sequence[Store], recipe: Recipe, begins: Begins
    ) -> None:
        """recipe : any with the key; copies : in the queue of the launches; own_copies : in another one

        begins : where the first structure is, as of Tables.put
        """
        method = recipe.method
        self.jobs: list[Job] = []
        self.most, self.count = CAPACITY if recipe.recorder.is_shared else 1, 0
        self._queue, self._copies, self._own_copies, self._stores = queue, copies, own_copies, stores
        if recipe.recorder.is_shared:
            self._tables: Tables | Alone = Tables(queue, stores, recipe.launches, recipe.rows, self.most)
        else:
            self._tables = Alone(queue, stores, recipe.launches, begins)
        self.both = [self._tables.bound(launches) for launches in method.both]
        self._builds = self._tables.bound(method.builds)
        self.begin = self._tables.bound([*method.begin, *method.evaluation])
        self._state_bytes = method.state_size * method.fine.itemsize
        looked = queue.host_array((self.most, -(-self._state_bytes // WORD)), np.uint64)
        self._looked = looked.view(method.fine)
        self._gathered = queue.empty(looked.size, np.uint64)  # states
        self._free = list(range(self.most))[::-1]  # slots of the tables
        self._seen: Event | None = None  # when the states are there

    def take(self, jobs: Sequence[Job]) -> None:
        """Give seats to structures, after those that are seated already."""
        for job in jobs:
            job.slot = self._free.pop()
        recipes: dict[Recipe, list[Job]] = {}
        for job in jobs:
            recipes.setdefault(job.recipe, []).append(job)
        for recipe, own in recipes.items():
            slots = np.array([job.slot for job in own], np.intp)
            self._tables.put(slots, recipe.rows, begins_of(self._stores, recipe, own))
        self.jobs += jobs
        self._list(self.jobs)

    def _list(self, jobs: Iterable[Job]) -> None:
        """Have launches serve these structures in this order."""
        self._tables.send(np.array([job.slot for job in jobs], np.int32))

    def evaluate(self, first: int, count: int) -> None:
        """Start an evaluation of so many structures of the list, from place `first` on."""
        self._tables.launch(self.begin, count, first)

    def iterate(self, count: int) -> None:
        """Start so many iterations of all structures."""
        while count and self.jobs:
            part = min(count, self._build())
            for _ in range(part):
                self._queue.launch_bound(self.both[self.count % 2], len(self.jobs))
                self.count += 1
            for job in self.jobs:
                job.evaluations += part
                job.left -= part
            count -= part

    def _build(self) -> int:
        """Build the blocks of structures whose turn it is; give how many evaluations may follow."""
        if not self._builds:
            return BUILD_EVERY
        first, evaluations = 0, [job.evaluations for job in self.jobs]
        for due, seats in groupby(is_due(count) for count in evaluations):
            n_seats = len(list(seats))
            if due:
                self._queue.launch_bound([self._builds[self.count % 2]], n_seats, first=first)
            first += n_seats
        return min(until_due(count) for count in evaluations)

    def start_look(self) -> None:
        """Have the states read once all that was started until now is done."""
        n = len(self.jobs)
        if n == 1:
            name = ("state", "next_state")[self.count % 2]
            place = self.jobs[0].place(self.jobs[0].recipe.piece(name))
            state = self._looked[0].view(np.uint8)[: self._state_bytes]
            self._seen = self._queue.start_read(state, self._stores[-1].buffer, place)
        else:
            self._seen = self._queue.start_read(self._looked[:n], self._states()) if n else None

    def _states(self) -> Buffer:
        """Give a buffer with the states as they are now, in the order of the seats."""
        name = ("state", "next_state")[self.count % 2]
        begin = np.array([job.place(job.recipe.piece(name)) for job in self.jobs], np.uint64)
        end = np.arange(len(self.jobs), dtype=np.uint64) * np.uint64(self._looked[0].nbytes)
        sizes = np.full(len(self.jobs), self._state_bytes)
        self._copies.move(self._stores[-1].buffer, self._gathered, begin, end, sizes)
        return self._gathered

    def look(self) -> Floats:
        """Wait for the states, and give them as `start_look` found them, (n_seats, N_STATE)."""
        if self._seen is not None:
            self._queue.wait(self._seen)
        return self._looked[: len(self.jobs), :N_STATE].astype(np.float64)

    @property
    def is_at_work(self) -> bool:
        """Tell if the states that are asked for are not there yet, so that the host may prepare other structures."""
        return self._seen is not None and not self._queue.has_come(self._seen)

    def leave(self, seats: Sequence[int], ended: Sequence[Job]) -> None:
        """Free seats, and evaluate structures once more where they ended. ended : that begin no other round"""
        gone = set(seats)
        self._free += [self.jobs[seat].slot for seat in seats]
        self.jobs = [job for seat, job in enumerate(self.jobs) if seat not in gone]
        self._list([*self.jobs, *ended])
        self.evaluate(len(self.jobs), len(ended))


def begins_of(stores: Sequence[Store], recipe: Recipe, jobs: Sequence[Job]) -> Begins:
    """Give where the regions of structures of one molecule begin, as of Tables.put."""
    scratch = np.array([job.scratch for job in jobs], np.uint64)
    of_scratch = np.uint64(stores[-1].shared[recipe.recorder]), scratch
    if not recipe.is_resident:
        return of_scratch
    rows = np.array([job.first for job in jobs], np.uint64)
    return np.uint64(stores[0].shared[recipe.system.recorder]), rows, *of_scratch
