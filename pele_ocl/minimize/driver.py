"""Minimization of many structures: assigns them to seats, launches iterations, and collects results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.errors import DeviceMemoryError
from ..energy.engine import Store, Tables
from ..opencl.interface import N_STATE, WORD, StepState, Stop
from ..plan.passes import BATCH_BYTES
from ..plan.plan import CHUNK_ATOMS
from .job import FREE, Job, Recipe, computable

if TYPE_CHECKING:
    from ..energy.engine import Begins
    from ..opencl.device import Device
    from ..opencl.memory import Buffer
    from ..opencl.queue import Event, Places, Queue
    from ..opencl.recording import BufferPiece

LOOK = 8  # iterations between the host's checks for finished structures, if others may follow
# Iterations started after the states are read, so that the device is busy until the host has filled free seats, even
# while it prepares a molecule.
AHEAD = 4
LEAST_LOOK, MOST_LOOK = 4, 32  # the same if no others follow: about a sixteenth of all previous iterations
MOST_READY = 8  # structures on the device that wait for a seat
# Limits for structures on the device: twice those of energy batches, so that iterations take longer than host work.
MOST_ATOMS = 2 * CHUNK_ATOMS
MOST_BYTES = 2 * BATCH_BYTES
CAPACITY = 1024  # seats per key
# Numbers of evaluations after which a structure's preconditioner is rebuilt: more often in the beginning, when the
# geometry is far from the minimum, and later because torsions keep changing.
FIRST_BUILDS = (0, 5, 10, 20)
BUILD_EVERY = 40

_NO_MORE: Sequence[Job] = ()

Jobs = Iterator[Sequence[Job] | None]  # None between two steps of the preparation


class Driver:
    """Minimizes structures in seats; structures whose launches have the same key share them.

    Results are bit-identical to those of single structures, in any order: docs/theory/minimize.md, section 8. The host
    reads the states every few iterations, and replaces finished structures by others. More iterations are started
    before the host waits for the states, so that the device is busy meanwhile, unless all structures may be done.

    looks : number of times the states were read
    largest_rms : largest rms gradient of the running structures, kcal/mol/A
    """

    def __init__(self, queue: Queue, own_queue: Queue, rows: Store | None = None, is_steady: bool = False) -> None:
        """queue : for launches; own_queue : for transfers, may be the same

        rows : store of rows to be minimized in place; None to transfer structures to the device
        is_steady : whether no structures follow the first ones
        """
        self._queue, self._own_queue, self._rows, self._is_steady = queue, own_queue, rows, is_steady
        self._by_key: dict[Hashable, Seats] = {}
        self.reset()
        self._ahead = 1 if is_steady else AHEAD
        self.begin(None)

    def make_room(self, jobs: Sequence[Job]) -> None:
        """Make the store large enough for all structures, or for as many as the device allows at a time.

        Raises DeviceMemoryError if a structure does not fit into the device's largest buffer.
        """
        recipes = dict.fromkeys(job.recipe for job in jobs)
        for recipe in recipes:
            _ = recipe.rows  # lays out the arrays
        sizes = [of.recorder.shared.size for of in recipes] + [job.recipe.recorder.own.size for job in jobs]
        least, device = max([of.size for of in recipes], default=0), self._queue.device
        needed, most = sum(sizes), max(least, most_bytes(device))
        if least > device.largest_buffer:
            n_atoms = max(len(of.protocol.atoms) for of in recipes)
            raise DeviceMemoryError(
                f"minimizing {n_atoms:,} atoms takes {least / 2**30:.1f} GiB; {device} has buffers of "
                f"{device.largest_buffer / 2**30:.1f} GiB at most"
            )
        if self.size < min(needed, most):
            self.reset(min(max(needed, 2 * self.size), most))

    def reset(self, size: int = 0) -> None:
        """Drop all seats, and make an empty store of `size` bytes for transferred structures."""
        self._by_key.clear()
        for queue in dict.fromkeys((self._queue, self._own_queue)):
            queue.free_staging()
        self._stores = [] if self._rows is None else [self._rows]  # frees the former store first
        self._stores.append(Store(self._own_queue, size))

    @property
    def scratch(self) -> Store:
        """Store of the minimizer's data."""
        return self._stores[-1]

    def begin(self, limit: float | None, clock: float | None = None) -> None:
        """Start the clock for new structures.

        limit : seconds after which all structures stop, None for no limit
        clock : time.perf_counter() at the start
        """
        self.limit, self.looks, self.largest_rms = limit, 0, 0.0
        self._clock = time.perf_counter() if clock is None else clock
        self._iterations = 0
        self._n_atoms = 0  # of structures with regions
        self._behind = 0  # iterations started after the last read of the states
        self._more = True  # whether more structures may be prepared
        self._next: Sequence[Job] = ()  # structures that wait for space
        self._ready: deque[Job] = deque()
        self._ended: list[Job] = []

    def stop(self) -> None:
        """Wait until the device has finished."""
        for queue in dict.fromkeys((self._queue, self._own_queue)):
            queue.finish()

    @property
    def size(self) -> int:
        return self.scratch.size

    @property
    def n_seated(self) -> int:
        """Number of running structures."""
        return sum([len(seats.jobs) for seats in self._by_key.values()])

    def fits(self, recipe: Recipe) -> bool:
        return recipe.size <= self.size

    def __bool__(self) -> bool:
        """Return whether any structure is running or may follow."""
        return bool(self._more or self._next or self._ready or self._ended or self.n_seated)

    def minimized(self, jobs: Jobs) -> Iterator[list[Job]]:
        """Minimize structures, and yield lists of finished ones, in any order; lists may be empty.

        The device is busy at each yield but the last.
        """
        done: list[Job] = []
        self._fill(jobs)
        while self:
            self._start()
            self._fill(jobs)
            yield done
            done = self._look()
        yield done

    def _fill(self, jobs: Jobs) -> None:
        """Prepare structures: at least one step of that work; more until one is ready or while the device is busy."""
        while len(self._ready) < MOST_READY:
            if not self._next:
                batch = next(jobs, _NO_MORE)
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
            if (self._ready or self.n_seated) and not any(seats.is_at_work for seats in self._by_key.values()):
                return

    def _bring(self, jobs: Sequence[Job]) -> int:
        """Write data of structures to the device while it computes; return the number of structures that fit."""
        brought: list[Job] = []
        for job in jobs:
            n_atoms = self._n_atoms + len(job.given)
            first = None if self._n_atoms and n_atoms > MOST_ATOMS else self.scratch.take(job.recipe.recorder)
            if first is None:
                break
            self._n_atoms, job.scratch = n_atoms, first
            brought.append(job)
        for recipe, own in by_recipe(brought).items():
            region, firsts = recipe.recorder.own, np.array([job.scratch for job in own], np.uint64)
            zeros = np.full(len(own), region.n_zeros)
            self._own_queue.clear_pieces(self.scratch.buffer, firsts + np.uint64(len(region.image)), zeros)
            images = np.broadcast_to(region.image, (len(own), len(region.image)))
            self._own_queue.scatter(self.scratch.buffer, [(firsts, images)])
        self._write(self._own_queue, brought, lambda own: {**begin_of(own), **data_of(own)})
        self._own_queue.finish()
        return len(brought)

    def _seats_for(self, job: Job) -> Seats:
        recipe, stores = job.recipe, self._stores
        begins = begins_of(stores, recipe, [job])
        key = recipe.key if recipe.recorder.is_shared else (recipe.key, *(int(np.ravel(each)[0]) for each in begins))
        if key not in self._by_key:
            self._by_key[key] = Seats(self._queue, stores, recipe, begins)
        return self._by_key[key]

    def _start(self) -> None:
        """Fill free seats, then launch the next iterations of all structures in seats."""
        self._enter()
        there, count = list(self._by_key.values()), self._count()
        left = max((job.left for seats in there for job in seats.jobs), default=0)
        self._behind = self._ahead if left > count else 0
        for seats in there:
            seats.iterate(min(count, max(left, 0)) - self._behind)
        for seats in there:
            seats.start_look()
        for seats in there:
            seats.iterate(self._behind)
        self._queue.submit()

    def _count(self) -> int:
        """Return the number of iterations until the next read of the states, larger than `_ahead`."""
        if not self._is_steady:
            return LOOK
        count = LEAST_LOOK if self._is_late else min(MOST_LOOK, max(LEAST_LOOK, self._iterations // 16))
        self._iterations += count
        return count

    def _enter(self) -> None:
        """Fill free seats with ready structures."""
        entering: dict[int, tuple[Seats, list[Job]]] = {}
        waiting: deque[Job] = deque()
        for job in self._ready:
            job.is_late = self._is_late
            seats = self._seats_for(job)
            _, own = entering.setdefault(id(seats), (seats, []))
            (own if len(seats.jobs) + len(own) < seats.most else waiting).append(job)
        self._ready = waiting
        for seats, own in entering.values():
            if own:
                self._seat(seats, own)

    def _seat(self, seats: Seats, jobs: Sequence[Job]) -> None:
        """Start structures; those whose bonds were moved are first evaluated at the given positions."""
        new = [job for job in jobs if not job.round]
        moved = [job for job in new if job.is_moved]
        first = len(seats.jobs)
        # Moved ones are last, so that they can be launched by themselves.
        seats.take([job for job in jobs if job not in moved] + moved)
        seats.evaluate(first, len(jobs))
        for recipe, own in by_recipe(new).items():
            results = recipe.pieces["results"]
            sizes = np.full(len(own), results.size)
            self._move(own, results, recipe.before, sizes)
        if moved:
            self._write(self._queue, moved, lambda own: {"positions": [job.start for job in own]})
            seats.evaluate(first + len(jobs) - len(moved), len(moved))

    @property
    def _is_late(self) -> bool:
        return self.limit is not None and self._now > self.limit

    @property
    def _now(self) -> float:
        return time.perf_counter() - self._clock

    def _look(self) -> list[Job]:
        """Wait for the states, free seats of finished structures, and return those that finished one look earlier."""
        ended, self._ended, self.largest_rms = self._ended, [], 0.0
        self.looks += 1
        is_late = self._is_late
        for seats in self._by_key.values():
            states = self._states(seats, is_late)
            for job, state in zip(seats.jobs, states, strict=True):
                job.look_at(state, self._behind)
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
        """Return the states of seats (n_seats, N_STATE). is_late : whether all structures stop now"""
        states = seats.look()
        if is_late and len(states):
            seats.start_look()  # again, after the iterations that ran meanwhile
            states = seats.look()
            states[states[:, StepState.STOPPED] == Stop.RUNNING, StepState.STOPPED] = Stop.TIME
            for k, job in enumerate(seats.jobs):
                job.stopping.judge(states[k : k + 1])
        return states

    def _let_go(self, seats: Seats, stopped: list[int], states: Floats) -> None:
        """Free seats of structures whose rounds are over; start another round, or evaluate the final positions."""
        jobs, again, end = [seats.jobs[seat] for seat in stopped], list[Job](), list[Job]()
        state_of = dict(zip(jobs, states[stopped], strict=True))
        for recipe, own in by_recipe(jobs).items():
            base = recipe.pieces["base"]
            kind = recipe.system.passes.encoding.dtype
            bases = self._own_queue.gather(self._buffer(base), places(own, base), base.size, kind)
            for job, where in zip(own, bases, strict=True):
                job.end(where, state_of[job], self._now)
        for job in jobs:
            (again if job.goes_on() else end).append(job)
        for job in again:
            job.begin_again()
        # On the queue of the launches, after the current iteration, which may write to the same arrays.
        self._write(self._queue, again, begin_of)
        for recipe, own in by_recipe(jobs).items():
            positions = recipe.pieces["positions"]
            self._move(own, recipe.pieces["base"], positions, np.full(len(own), positions.size))
        seats.leave(stopped, end)
        self._ready.extend(again)
        self._ended += end

    def _finish(self, ended: Sequence[Job]) -> None:
        """Read the results of finished structures, and free their memory."""
        for recipe, own in by_recipe(ended).items():
            system, outputs = recipe.system, []
            for piece, name in ((recipe.before, "given"), (recipe.pieces["results"], "final")):
                positions = np.stack([computable(getattr(job, name), system.energy.atoms) for job in own])
                kind = recipe.real
                results = self._own_queue.gather(self._buffer(piece), places(own, piece), piece.size, kind)
                outputs.append(system.passes.unpacked(results, positions))
            (before, wrong), (after, wrong_after) = outputs
            for k, job in enumerate(own):
                job.result = wrong.get(k, "") or wrong_after.get(k, "")
                if not job.result:
                    job.result = job.result_of(before, after, k)
                self.scratch.give_back(recipe.recorder, job.scratch)
                self._n_atoms -= len(job.given)

    def _buffer(self, piece: BufferPiece) -> Buffer:
        return self._stores[piece.store].buffer

    def _move(self, jobs: Sequence[Job], source: BufferPiece, target: BufferPiece, sizes: NDArray[np.int64]) -> None:
        """Start copying a piece of structures of one molecule, on the queue of the launches."""
        begin, end = places(jobs, source), places(jobs, target)
        self._queue.move_pieces(self._buffer(source), self._buffer(target), begin, end, sizes)

    def _write(
        self, queue: Queue, jobs: Iterable[Job], values: Callable[[list[Job]], Mapping[str, Sequence[NDArray[Any]]]]
    ) -> None:
        """Start writing pieces. values : returns an array per structure of one molecule, by name of the piece"""
        pieces: dict[int, list[tuple[Places, NDArray[Any]]]] = {}
        for recipe, own in by_recipe(jobs).items():
            for name, arrays in values(own).items():
                piece = recipe.pieces[name]
                pieces.setdefault(piece.store, []).append((places(own, piece), np.stack(arrays)))
        for store, there in pieces.items():
            queue.scatter(self._stores[store].buffer, there)


class Seats(Tables):
    """Argument tables with seats for structures whose launches have the same key; one launch serves all of them.

    jobs : the structures by seat; most : number of seats; count : iterations so far
    both : launches of an iteration, for either buffer of the states; begin : launches of an initial evaluation
    """

    def __init__(self, queue: Queue, stores: Sequence[Store], recipe: Recipe, begins: Begins) -> None:
        """recipe : any with the key; begins : offsets of the first structure, as in Tables.put"""
        method = recipe.method
        self.jobs: list[Job] = []
        self.most, self.count = CAPACITY if recipe.recorder.is_shared else 1, 0
        super().__init__(queue, stores, recipe, self.most, begins)
        self._stores = stores
        self.both = [self.bound(launches) for launches in method.both]
        self._builds = self.bound(method.builds)
        self.begin = self.bound([*method.begin, *method.evaluation])
        self._state_bytes = method.state_size * method.fine.itemsize
        looked = queue.host_array((self.most, -(-self._state_bytes // WORD)), np.uint64)
        self._looked = looked.view(method.fine)
        self._gathered = queue.empty(looked.size, np.uint64)  # states
        self._free = list(range(self.most))[::-1]  # slots of the tables
        self._seen: Event | None = None  # of the last read of the states

    def take(self, jobs: Sequence[Job]) -> None:
        """Assign seats to structures, after the occupied ones."""
        for job in jobs:
            job.slot = self._free.pop()
        recipes: dict[Recipe, list[Job]] = {}
        for job in jobs:
            recipes.setdefault(job.recipe, []).append(job)
        for recipe, own in recipes.items():
            slots = np.array([job.slot for job in own], np.intp)
            self.put(slots, recipe.rows, begins_of(self._stores, recipe, own))
        self.jobs += jobs
        self._send_jobs(self.jobs)

    def _send_jobs(self, jobs: Iterable[Job]) -> None:
        """Set the structures to launch, in this order."""
        self.send(np.array([job.slot for job in jobs], np.int32))

    def evaluate(self, first: int, count: int) -> None:
        """Start an evaluation of `count` structures of the list, starting at index `first`."""
        self.launch(self.begin, count, first)

    def iterate(self, count: int) -> None:
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
        """Rebuild preconditioners that are due; return the number of evaluations until the next one is."""
        if not self._builds:
            return BUILD_EVERY
        first, evaluations = 0, [job.evaluations for job in self.jobs]
        for due, seats in groupby([is_due(count) for count in evaluations]):
            n_seats = len(list(seats))
            if due:
                self._queue.launch_bound([self._builds[self.count % 2]], n_seats, first=first)
            first += n_seats
        return min([until_due(count) for count in evaluations])

    def start_look(self) -> None:
        """Start reading the states after all earlier launches."""
        n = len(self.jobs)
        if n == 1:
            name = ("state", "next_state")[self.count % 2]
            place = self.jobs[0].place(self.jobs[0].recipe.pieces[name])
            state = self._looked[0].view(np.uint8)[: self._state_bytes]
            self._seen = self._queue.start_read(state, self._stores[-1].buffer, place)
        else:
            self._seen = self._queue.start_read(self._looked[:n], self._states()) if n else None

    def _states(self) -> Buffer:
        """Return a buffer with the current states, in the order of the seats."""
        name = ("state", "next_state")[self.count % 2]
        begin = np.array([job.place(job.recipe.pieces[name]) for job in self.jobs], np.uint64)
        end = np.arange(len(self.jobs), dtype=np.uint64) * np.uint64(self._looked[0].nbytes)
        sizes = np.full(len(self.jobs), self._state_bytes)
        self._queue.move_pieces(self._stores[-1].buffer, self._gathered, begin, end, sizes)
        return self._gathered

    def look(self) -> Floats:
        """Wait for the states read by `start_look`, and return them, (n_seats, N_STATE)."""
        if self._seen is not None:
            self._queue.wait(self._seen)
        return self._looked[: len(self.jobs), :N_STATE].astype(np.float64)

    @property
    def is_at_work(self) -> bool:
        """Return whether the states are still being computed, so that the host may prepare other structures."""
        return self._seen is not None and not self._queue.is_complete(self._seen)

    def leave(self, seats: Sequence[int], ended: Sequence[Job]) -> None:
        """Free seats, and evaluate structures at their final positions. ended : structures without another round"""
        gone = set(seats)
        self._free += [self.jobs[seat].slot for seat in seats]
        self.jobs = [job for seat, job in enumerate(self.jobs) if seat not in gone]
        self._send_jobs([*self.jobs, *ended])
        self.evaluate(len(self.jobs), len(ended))


def most_bytes(device: Device) -> int:
    """Largest number of bytes on a device for structures that are minimized together."""
    return min(MOST_BYTES, device.largest_buffer, device.memory // 4)


def by_recipe(jobs: Iterable[Job]) -> dict[Recipe, list[Job]]:
    """Group structures by molecule."""
    found: dict[Recipe, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.recipe, []).append(job)
    return found


def places(jobs: Sequence[Job], piece: BufferPiece) -> Places:
    """Return the byte offsets of a piece in its store, for structures of one molecule."""
    return np.array([job.place(piece) for job in jobs], np.uint64)


def begin_of(jobs: Sequence[Job]) -> dict[str, list[NDArray[Any]]]:
    """Return the initial state of a round, without positions, for structures of one molecule."""
    states = [job.first_state() for job in jobs]
    none = [np.zeros(2, np.int32)] * len(jobs)
    begin = {"base": [job.start for job in jobs], "state": states, "next_state": states}
    return begin | {name: none for name in jobs[0].recipe.method.cleared}


def data_of(jobs: Sequence[Job]) -> dict[str, list[NDArray[Any]]]:
    """Return the data of structures of one molecule: moving atoms and, if not resident, positions."""
    recipe = jobs[0].recipe
    found = {FREE: [job.free.astype(recipe.real) for job in jobs]}
    return found if recipe.is_resident else {**found, "positions": [job.origin for job in jobs]}


def begins_of(stores: Sequence[Store], recipe: Recipe, jobs: Sequence[Job]) -> Begins:
    """Return the offsets of regions of structures of one molecule, as in Tables.put."""
    scratch = np.array([job.scratch for job in jobs], np.uint64)
    of_scratch = np.uint64(stores[-1].shared[recipe.recorder]), scratch
    if not recipe.is_resident:
        return of_scratch
    rows = np.array([job.first for job in jobs], np.uint64)
    return np.uint64(stores[0].shared[recipe.system.recorder]), rows, *of_scratch


def is_due(evaluations: int) -> bool:
    """Return whether the preconditioner is rebuilt after this number of evaluations."""
    return evaluations in FIRST_BUILDS or (evaluations > 0 and evaluations % BUILD_EVERY == 0)


def until_due(evaluations: int) -> int:
    """Number of evaluations until the preconditioner is rebuilt."""
    later = [first - evaluations for first in FIRST_BUILDS if first > evaluations]
    return min([*later, BUILD_EVERY - evaluations % BUILD_EVERY])
