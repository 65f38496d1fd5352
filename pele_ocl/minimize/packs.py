"""Molecules of different topologies minimised together, in as few launches as there are kernels."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..engine.launching import Room
from ..errors import InputError
from ..opencl.shared import StepState, Stop
from ..plan.evaluator import Failures
from ..plan.passes import BATCH_BYTES
from ..plan.plan import CHUNK_ATOMS
from .minimizer import Minimizer, computable
from .pack import Member, Pack, Seated
from .result import MinimizeResult

if TYPE_CHECKING:
    from ..opencl.device import Device

LOOK = 8  # iterations after which the host looks which structures are done
# Of them so many come behind the look, so that the device is at work until the host, which may be preparing a molecule
# when the states come, has let others in.
AHEAD = 4
# Of structures on the device: twice as much as conformations have, so that iterations take longer than the host's part.
MOST_ATOMS = 2 * CHUNK_ATOMS
MOST_BYTES = 2 * BATCH_BYTES
MOST_READY = 8  # structures that wait on the device for a seat


class Packs:
    """Structures of different molecules on their way through the seats of packs, one for each key.

    Results come by `look`, in whatever order structures are done; docs/theory/minimize.md, section 8.
    """

    def __init__(self, device: Device, precision: str, stack: ExitStack) -> None:
        """stack : that gives the queues back in the end"""
        from ..opencl.run import Run

        plain = Run(device, precision, profile=False)
        self._run, self._aside = (plain.with_queue(stack.enter_context(device.lend_queue())) for _ in range(2))
        self.device, self.precision = device, precision
        size = min(MOST_BYTES, device.largest_buffer, device.memory // 4)
        self._large, self._room, self._size = plain.empty(size, np.uint8), Room(size), size
        self._packs: dict[Hashable, Pack] = {}
        self._more = True  # whether structures may come that are not ready yet
        self._next: Seated | None = None  # that comes as soon as there is room
        self._ready: deque[Seated] = deque()
        self._leaving: list[Seated] = []
        self._begin, self.largest_gradient = time.perf_counter(), 0.0  # that of the structures in seats
        self._n_atoms = 0  # of the structures in seats and of those that are ready
        stack.callback(self._finish)

    def _finish(self) -> None:
        """Wait for the device, where work is left."""
        self._run.finish()
        self._aside.finish()

    def __bool__(self) -> bool:
        """Whether any structure is under way, or may come."""
        return bool(self._more or self._next or self._ready or self._leaving or self.n_seats)

    @property
    def n_seats(self) -> int:
        """Structures that are minimised at the moment."""
        return sum(len(pack.seats) for pack in self._packs.values())

    def suits(self, minimizer: Minimizer) -> bool:
        """Whether a molecule can be minimised here."""
        energy = minimizer.energy
        return minimizer._can_share and energy.device is self.device and energy.precision == self.precision

    def fits(self, member: Member) -> bool:
        """Whether a molecule has room on the device, if no other is there."""
        return member.size <= self._size

    def structure(self, member: Member, k: int, given: Floats) -> Seated:
        """A structure at positions (n, 3) A that begin. Raises InputError for those that no molecule has."""
        minimizer, failures = member.minimizer, Failures(1)
        given = np.asarray(given, np.float64)
        minimizer._check_starts(given[np.newaxis], failures)
        start = minimizer._placed(given[np.newaxis])
        origin, _, _ = member.encoded(given[np.newaxis])
        encoded, aside, errors = member.encoded(start)
        if errors:
            raise InputError(errors[0])
        return Seated(member, k, given, origin[0], encoded[0], aside[0])

    def fill(self, structures: Iterator[Seated | None]) -> None:
        """Make the next structures ready, a part of the work at least; more until one is, and while the device works.

        structures : gives None between the parts of what it takes to make one
        """
        while len(self._ready) < MOST_READY:
            if self._next is None:
                try:
                    self._next = next(structures)
                except StopIteration:
                    self._more = False
                    return
            if self._next is not None:
                if not self._bring(self._next):
                    return
                self._next = None
            is_at_work = any(pack.is_at_work for pack in self._packs.values())
            if (self._ready or self.n_seats) and not is_at_work:
                return

    def _bring(self, structure: Seated) -> bool:
        """Fill the region of a structure, beside what the device does; False where there is no room at the moment."""
        member = structure.member
        n_atoms = self._n_atoms + len(structure.given)
        first = None if self._n_atoms and n_atoms > MOST_ATOMS else self._room.take(member.size)
        if first is None:
            return False
        self._n_atoms, structure.first, run = n_atoms, first, self._aside
        for begin, region in ((first, member.shared), (structure.own, member.own)):
            if len(region.image):
                run.write(self._large, region.image, begin)
            if region.n_zeros:
                run.clear(self._large, begin + len(region.image), region.n_zeros)
        state = member.steps.first_state()
        for name, values in (("base", structure.encoded), ("state", state), ("next_state", state)):
            run.write(self._large, values.view(np.uint8), structure.own + member.kept(name).first)
        run.write(self._large, structure.origin.view(np.uint8), structure.own + member.kept("positions").first)
        for name, values in structure.initial:
            run.write(self._large, values.view(np.uint8).ravel(), structure.own + member.piece(name).first)
        self._ready.append(structure)
        return True

    def start(self) -> None:
        """Let in who is ready, and start some iterations of all structures in seats."""
        self._enter()
        packs = list(self._packs.values())
        for pack in packs:
            pack.iterate(LOOK - AHEAD)
        for pack in packs:
            pack.start_look()
        for pack in packs:
            pack.iterate(AHEAD)
        self._run.submit()

    def _enter(self) -> None:
        """Let in who is ready, as far as there are seats; and have the device know who left."""
        entering: dict[Hashable, list[Seated]] = {key: [] for key in self._packs}
        waiting: deque[Seated] = deque()
        for structure in self._ready:
            key = structure.member.key
            if key not in self._packs:
                self._packs[key] = Pack(self._run, self._large, structure.member)
            pack, own = self._packs[key], entering.setdefault(key, [])
            (own if len(pack.seats) + len(own) < pack.most else waiting).append(structure)
        self._ready = waiting
        for key, own in entering.items():
            self._packs[key].enter(own)

    def look(self) -> Iterator[tuple[int, MinimizeResult | str]]:
        """Wait for the states; the results of structures that were done at the look before, or why they have none."""
        leaving, self._leaving, self.largest_gradient = self._leaving, [], 0.0
        for pack in self._packs.values():
            states = pack.look()
            goes_on = states[:, StepState.STOPPED] == Stop.RUNNING
            for state, structure in zip(states[goes_on], np.array(pack.seats, object)[goes_on], strict=True):
                mean2 = float(state[StepState.GRADIENT2]) / len(structure.given)
                self.largest_gradient = max(self.largest_gradient, float(np.sqrt(mean2)))
            for seat in np.flatnonzero(~goes_on)[::-1].tolist():
                self._leave(pack, seat, states[seat])
        self._run.submit()
        if leaving and not self.n_seats:
            self._run.finish()
        for structure in leaving:
            yield structure.k, self._result(structure)

    def _leave(self, pack: Pack, seat: int, state: Floats) -> None:
        """Fetch where the structure of a seat ended, and start an evaluation of it, for the next look."""
        structure = pack.seats[seat]
        pipeline, own, kept = structure.member.pipeline, structure.own, structure.member.kept
        encoded = np.empty((1, structure.encoded.size), structure.encoded.dtype)
        self._aside.read(encoded.view(np.uint8), self._large, own + kept("base").first)
        structure.state, structure.final = state, pipeline.decode(encoded)[0] + structure.aside
        still = ~structure.member.minimizer.free
        structure.final[still] = structure.given[still]  # to the last digit
        final = computable(structure.final[np.newaxis], pipeline.atoms)
        pipeline.encode(final, slice(0, 1), encoded, structure.failures)
        # Behind the iteration that is still at work, which may write these positions, too.
        values = encoded.view(np.uint8).ravel()
        structure.sent = values, self._run.start_write(self._large, values, own + kept("positions").first)
        pack.evaluate(seat)
        pack.leave(seat)
        self._leaving.append(structure)

    def _result(self, structure: Seated) -> MinimizeResult | str:
        """The result of a structure that has left its seat, whose room is free from now on."""
        member, first = structure.member, structure.first
        energies, atoms = [], member.pipeline.atoms
        for piece, positions in ((member.before, structure.given), (member.piece("results"), structure.final)):
            results = np.empty(member.passes.n_results, member.passes.run.dtype)
            self._aside.read(results.view(np.uint8), self._large, structure.own + piece.first)
            energies.append(structure.energies(results, computable(positions, atoms)))
        before, after = energies
        self._room.give_back(first, member.size)
        self._n_atoms -= len(structure.given)
        reasons = [*structure.failures.reasons.values(), *after.errors.values()]
        if reasons:
            return reasons[0]
        seconds = time.perf_counter() - self._begin
        return member.minimizer._result(structure.given, structure.final, structure.state, before, after, 0, seconds)
