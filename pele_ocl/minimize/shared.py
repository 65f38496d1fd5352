"""Structures of different molecules, or with frozen atoms of their own, minimised by the same launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..energy.engine.copies import WORD, Copies, Places
from ..energy.engine.launching import Room, Tables
from ..energy.engine.system import System
from ..plan.passes import BATCH_BYTES
from ..plan.plan import CHUNK_ATOMS
from .iteration import Iteration
from .minimizer import Minimizer, computable, seated
from .scheduler import Scheduler
from .seats import Seated, Seats

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue
    from ..opencl.recording import BufferPiece, RecordedLaunch, RecordingQueue

CAPACITY = 1024  # seats of one kind
LOOK = 8  # iterations after which the host looks which structures are done
# Of them so many come behind the look, so that the device is at work until the host, which may be preparing a molecule
# when the states come, has let others in.
AHEAD = 4
# Of structures on the device: twice as much as conformations have, so that iterations take longer than the host's part.
MOST_ATOMS = 2 * CHUNK_ATOMS
MOST_BYTES = 2 * BATCH_BYTES

FREE = "free"  # names the atoms that move

Own = Mapping[str, NDArray[Any]]  # values (m, size) of structures, by the names of buffers


class Member(System):
    """A molecule as its minimiser would keep it on a device for itself, recorded once for all of its structures."""

    def __init__(self, minimizer: Minimizer) -> None:
        minimizer.energy._measure_frozen()  # which takes launches of its own, and no record of them
        super().__init__(minimizer.energy)
        self.minimizer = minimizer

    @cached_property
    def iteration(self) -> Iteration:
        """Record the iteration that follows each evaluation."""
        return self.minimizer._iteration_of(self.passes)

    @cached_property
    def before(self) -> BufferPiece:
        """Place for the results of where a structure began."""
        return cast("BufferPiece", self.recorder.empty(self.passes.n_results))

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        iteration, _ = self.iteration, self.before
        found = dict.fromkeys([*iteration.begin, *iteration.both[0], *iteration.both[1], *iteration.builds])
        return cast("list[RecordedLaunch]", list(found))

    @property
    def size(self) -> int:
        """Bytes of all that a structure takes, with what it shares."""
        return self.shared.size + self.own.size

    def per_seat(self, name: str) -> BufferPiece:
        """Give where a seat keeps something, by its name in `Iteration.per_seat`."""
        return cast("BufferPiece", self.iteration.per_seat[name][0])

    def named(self, name: str) -> BufferPiece:
        """Give where a seat keeps something: FREE, or a name of `Iteration.per_seat` or of buffers of the passes."""
        if name == FREE:
            return cast("BufferPiece", self.iteration.free)
        return self.per_seat(name) if name in self.iteration.per_seat else self.piece(name)

    def structures(
        self, numbers: Sequence[int], given: Floats, free: Sequence[NDArray[np.bool_]] | None = None,
        own: Own | None = None,
    ) -> tuple[list[SharedSeated], dict[int, str]]:  # fmt: skip
        """Make structures of these numbers that begin at positions (m, n, 3) A, and find why others cannot.

        free : of each, (n,) atoms that move, by default all that the minimiser moves
        own : what they have of their own in buffers of the passes
        """
        given = np.asarray(given, np.float64)
        masks = [self.minimizer.free] * len(given) if free is None else free
        found, errors = seated(self.minimizer, self.pipeline, given, masks)
        origins = self.encoded(given[[one.number for one in found]])[0] if found else given
        taken = [
            SharedSeated(
                **{of.name: getattr(one, of.name) for of in fields(Seated)}, member=self, origin=origin,
                own={name: values[one.number] for name, values in (own or {}).items()},
            )
            for one, origin in zip(found, origins, strict=False)
        ]  # fmt: skip
        for one in taken:
            one.number = numbers[one.number]
        return taken, {numbers[k]: str(error) for k, error in errors.items()}


@dataclass(eq=False, kw_only=True)
class SharedSeated(Seated):
    """A structure with a region of the large buffer.

    origin : (3 n) encoded `given`; own : what it has of its own in buffers of the passes
    first : byte of its region; slot : of the tables, while it has a seat
    """

    member: Member
    origin: NDArray[Any]
    own: Own
    first: int = -1
    slot: int = -1

    def place(self, piece: BufferPiece) -> int:
        """Give the byte of the large buffer at which it keeps something."""
        return self.first + piece.first


class Regions:
    """Regions of a large buffer: of molecules, as long as there is room, and of structures.

    shared : first bytes of molecules
    """

    def __init__(self, queue: Queue, size: int) -> None:
        """queue : writes what structures of a molecule share"""
        self.buffer, self.size, self.shared = queue.empty(size, np.uint8), size, dict[Member, int]()
        self._queue = queue
        self._room, self._users = Room(size), Counter[Member]()

    def take(self, member: Member) -> int | None:
        """Take a region for a structure, and one for its molecule if that has none; None if there is no room."""
        own = self._taken(member)
        if own is None and not any(self._users.values()):  # what is free is in parts that are too small
            self._drop(self.shared)
            own = self._taken(member)
        if own is not None:
            self._users[member] += 1
        return own

    def give_back(self, structure: SharedSeated) -> None:
        """Free the region of a structure; its molecule keeps its own until there is no room."""
        self._room.give_back(structure.first, structure.member.own.size)
        self._users[structure.member] -= 1

    def _taken(self, member: Member) -> int | None:
        if member not in self.shared:
            # Molecules of calls before go first: later their bytes would be gaps, too small for the last structure.
            self._drop([other for other in self.shared if not self._users[other]])
            first = self._first(member.shared.size, member)
            if first is None:
                return None
            self.shared[member] = first
            member.recorder.homes.add(self)
            self._queue.write(self.buffer, member.shared.image, first)
        return self._first(member.own.size, member)

    def rewrite(self, recorder: RecordingQueue, is_shared: bool, first: int, data: NDArray[np.uint8]) -> None:
        """Write bytes to what structures of a molecule share; these get what they have when they are brought."""
        for member, begin in self.shared.items():
            if is_shared and member.recorder is recorder:
                self._queue.write(self.buffer, data, begin + first)

    def _first(self, size: int, member: Member) -> int | None:
        """Take so many bytes, if need be from molecules without structures, but for one."""
        first = self._room.take(size)
        if first is None:
            self._drop([other for other in self.shared if other is not member and not self._users[other]])
            first = self._room.take(size)
        return first

    def _drop(self, members: Iterable[Member]) -> None:
        for member in list(members):
            self._room.give_back(self.shared.pop(member), member.shared.size)


class SharedSeats(Seats):
    """Seats of structures whose molecules have one key: each launch is one for all of them.

    copies : in the queue of the launches; own_copies : in a queue of their own
    """

    def __init__(self, queue: Queue, copies: Copies, own_copies: Copies, regions: Regions, member: Member) -> None:
        """member : any with the key"""
        iteration = member.iteration
        self._tables = tables = Tables(queue, regions.buffer, member.launches, member.rows, CAPACITY)
        self._state_bytes = iteration.state_size * iteration.fine.itemsize
        looked = queue.host_array((CAPACITY, -(-self._state_bytes // WORD)), np.uint64)
        both = [tables.bound(launches) for launches in iteration.both]
        super().__init__(queue, CAPACITY, both, tables.bound(iteration.builds), looked.view(iteration.fine))
        self._copies, self._own_copies, self._regions = copies, own_copies, regions
        self._free = list(range(CAPACITY))[::-1]  # slots of the tables
        self._begin = tables.bound([*iteration.begin, *iteration.evaluation])
        self._gathered = queue.empty(looked.size, np.uint64)  # states

    def enter(self, structures: Sequence[Seated]) -> None:
        """Let structures begin whose regions are filled; positions that were given are evaluated once before."""
        entering = cast("Sequence[SharedSeated]", structures)
        for structure in entering:
            structure.slot = self._free.pop()
        for member, own in by_member(entering).items():
            slots, firsts = np.array([of.slot for of in own], np.intp), np.array([of.first for of in own], np.uint64)
            self._tables.put(slots, member.rows, self._regions.shared[member], firsts)
        new = [structure for structure in entering if not structure.round]
        moved = {structure for structure in new if not np.array_equal(structure.origin, structure.start)}
        first = len(self.structures)
        self.structures += [structure for structure in entering if structure not in moved]
        self.structures += moved  # last, so that they can be launched by themselves
        self._list(self.structures)
        self._tables.launch(self._begin, len(entering), first)
        large = self._regions.buffer
        for member, own in by_member(new).items():
            results, before = member.piece("results"), member.before
            sizes = np.full(len(own), results.size)
            self._copies.move(large, large, places(own, results), places(own, before), sizes)
        if moved:  # their bonds are restored, or held at their lengths
            write(self._copies, large, moved, lambda own: {"positions": [structure.start for structure in own]})
            self._tables.launch(self._begin, len(moved), len(self.structures) - len(moved))

    def _list(self, structures: Iterable[Seated]) -> None:
        """Have launches serve these structures in this order."""
        self._tables.send(np.array([cast("SharedSeated", structure).slot for structure in structures], np.int32))

    def _states(self) -> Buffer:
        there = cast("Sequence[SharedSeated]", self.structures)
        begin = np.array([structure.place(structure.member.per_seat(self.state)) for structure in there], np.uint64)
        end = np.arange(len(there), dtype=np.uint64) * np.uint64(self._looked[0].nbytes)
        self._copies.move(self._regions.buffer, self._gathered, begin, end, np.full(len(there), self._state_bytes))
        return self._gathered

    @property
    def is_at_work(self) -> bool:
        return self._seen is not None and not self._queue.has_come(self._seen)

    def bases(self, seats: Sequence[int]) -> Sequence[NDArray[Any]]:
        there = [cast("SharedSeated", self.structures[seat]) for seat in seats]
        found: dict[Seated, NDArray[Any]] = {}
        for member, own in by_member(there).items():
            base = member.per_seat("base")
            array = self._own_copies.gather(self._regions.buffer, places(own, base), base.size, own[0].start.dtype)
            found |= zip(own, array, strict=True)
        return [found[structure] for structure in there]

    def leave(self, seats: Sequence[int], ended: Sequence[Seated]) -> None:
        """Free seats, and evaluate structures once more where they ended."""
        gone = set(seats)
        self._free += [cast("SharedSeated", self.structures[seat]).slot for seat in seats]
        self.structures = [structure for seat, structure in enumerate(self.structures) if seat not in gone]
        self._list([*self.structures, *ended])
        self._tables.launch(self._begin, len(ended), len(self.structures))


class SharedScheduler(Scheduler):
    """Structures of different molecules on their way through seats, of one kind for each key of their launches.

    device, precision : of all; docs/theory/minimize.md, section 8
    """

    ahead = AHEAD

    def __init__(self, device: Device, precision: str, stack: ExitStack, size: int | None = None) -> None:
        """stack : gives the queues back in the end; size : bytes of all regions, as many as there may be by default"""
        from ..opencl.queue import Queue

        plain = Queue(device, precision, profile=False)
        queue, self._own_queue = (stack.enter_context(plain.beside()) for _ in range(2))
        super().__init__(queue)
        self.device, self.precision = device, precision
        self._copies, self._own_copies = Copies(queue), Copies(self._own_queue)
        self._regions = Regions(self._own_queue, most_bytes(device) if size is None else size)
        self._by_key: dict[Hashable, SharedSeats] = {}
        self._n_atoms = 0  # of the structures that have regions
        stack.callback(self.stop)

    def stop(self) -> None:
        """Wait for the device, where work is left."""
        self._queue.finish()
        self._own_queue.finish()

    @property
    def seats(self) -> Iterable[Seats]:
        return self._by_key.values()

    def suits(self, minimizer: Minimizer) -> bool:
        """Tell if a molecule can be minimised here."""
        energy = minimizer.energy
        is_timed = minimizer.stopping.max_seconds is not None
        return not is_timed and energy.device is self.device and energy.precision == self.precision

    def fits(self, member: Member) -> bool:
        """Tell if a structure of a molecule has room on the device, if no other is there."""
        return member.size <= self._regions.size

    def _count(self) -> int:
        return LOOK

    def _seats_for(self, structure: Seated) -> Seats:
        member = cast("SharedSeated", structure).member
        if member.key not in self._by_key:
            self._by_key[member.key] = SharedSeats(self._queue, self._copies, self._own_copies, self._regions, member)
        return self._by_key[member.key]

    def _bring(self, structures: Sequence[Seated]) -> int:
        """Fill the regions of structures, beside what the device does."""
        brought: list[SharedSeated] = []
        for structure in cast("Sequence[SharedSeated]", structures):
            n_atoms = self._n_atoms + len(structure.given)
            first = None if self._n_atoms and n_atoms > MOST_ATOMS else self._regions.take(structure.member)
            if first is None:
                break
            self._n_atoms, structure.first = n_atoms, first
            brought.append(structure)
        large = self._regions.buffer
        for member, own in by_member(brought).items():
            image, firsts = member.own.image, np.array([structure.first for structure in own], np.uint64)
            zeros = np.full(len(own), member.own.n_zeros)
            self._own_copies.clear(large, firsts + np.uint64(len(image)), zeros)
            self._own_copies.scatter(large, [(firsts, np.broadcast_to(image, (len(own), len(image))))])
        write(self._own_copies, large, brought, lambda own: {**begin_of(own), **data_of(own)})
        self._own_queue.finish()
        return len(brought)

    def _place(self, again: Sequence[Seated], end: Sequence[Seated]) -> None:
        """Write in the queue of the launches, after the iteration at work, which may write there, too."""
        large = self._regions.buffer
        write(self._copies, large, again, lambda own: {**begin_of(own), "positions": starts_of(own)})
        for member, own in by_member(end).items():
            finals = np.stack([computable(structure.final, member.energy.atoms) for structure in own])
            found, _, errors = member.encoded(finals)
            for k, reason in errors.items():
                own[k].result = reason
            self._copies.scatter(large, [(places(own, member.per_seat("positions")), found)])

    def _finish(self, ended: Sequence[Seated]) -> None:
        """Take the results of structures that have left their seats, whose room is free from now on."""
        for member, own in by_member(ended).items():
            energies = []
            for piece, name in ((member.before, "given"), (member.piece("results"), "final")):
                positions = np.stack([computable(getattr(structure, name), member.energy.atoms) for structure in own])
                kind = member.passes.queue.dtype
                results = self._own_copies.gather(self._regions.buffer, places(own, piece), piece.size, kind)
                energies.append(member.energies(results, positions))
            before, after = energies
            for k, structure in enumerate(own):
                structure.result = structure.result or after.errors.get(k, "")
                if not structure.result:
                    structure.result = member.minimizer._result_of(structure, before, after, k)
                self._regions.give_back(structure)
                self._n_atoms -= len(structure.given)


def most_bytes(device: Device) -> int:
    """Give the bytes that regions of structures may take on a device."""
    return min(MOST_BYTES, device.largest_buffer, device.memory // 4)


def by_member(structures: Iterable[Seated]) -> dict[Member, list[SharedSeated]]:
    """Give the structures of each molecule."""
    found: dict[Member, list[SharedSeated]] = {}
    for structure in structures:
        shared = cast("SharedSeated", structure)
        found.setdefault(shared.member, []).append(shared)
    return found


def places(structures: Sequence[SharedSeated], piece: BufferPiece) -> Places:
    """Give the bytes of the large buffer at which structures of one molecule keep something."""
    return np.array([structure.place(piece) for structure in structures], np.uint64)


def write(
    copies: Copies, large: Buffer, structures: Iterable[Seated],
    values: Callable[[list[SharedSeated]], Mapping[str, Sequence[NDArray[Any]]]],
) -> None:  # fmt: skip
    """Start to write what structures keep. values : of structures of one molecule, by name, an array for each"""
    pieces: list[tuple[Places, NDArray[Any]]] = []
    for member, own in by_member(structures).items():
        pieces += [(places(own, member.named(name)), np.stack(arrays)) for name, arrays in values(own).items()]
    copies.scatter(large, pieces)


def starts_of(structures: Sequence[SharedSeated]) -> list[NDArray[Any]]:
    """Give the encoded positions where rounds of structures begin."""
    return [structure.start for structure in structures]


def begin_of(structures: Sequence[SharedSeated]) -> dict[str, list[NDArray[Any]]]:
    """Give what structures of one molecule keep when a round begins, but for positions."""
    states = [structure.first_state(structure.member.iteration) for structure in structures]
    return {"base": starts_of(structures), "state": states, "next_state": states}


def data_of(structures: Sequence[SharedSeated]) -> dict[str, list[NDArray[Any]]]:
    """Give what structures of one molecule have of their own: positions that were given, atoms that move, and more."""
    kind = structures[0].member.passes.queue.dtype
    found = {"positions": [of.origin for of in structures], FREE: [of.free.astype(kind) for of in structures]}
    return found | {name: [of.own[name] for of in structures] for name in structures[0].own}
