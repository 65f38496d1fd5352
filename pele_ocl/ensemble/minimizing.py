"""Rows of an ensemble minimised: each from where it is, by launches that all share."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import DeviceMemoryError, InputError
from ..energy.engine.system import System
from ..minimize.minimizer import Minimizer
from ..minimize.options import check_options
from ..minimize.result import MinimizeBatch, MinimizeResult
from ..minimize.shared import Member, SharedScheduler, SharedSeated, most_bytes
from .restraints import values_of_rows
from .state import State

if TYPE_CHECKING:
    from ..opencl.device import Device

MOST_MEMBERS = 256  # molecules with options that are kept prepared

Found = dict[int, MinimizeResult | str]  # results of rows, or why there is none


class RowMinimizer:
    """Minimisation of the rows of an ensemble: molecules prepared once for all rows and calls, and their scheduler.

    Other options alone make a molecule be prepared anew. Frozen atoms and references of restraints are data of rows.
    """

    def __init__(self) -> None:
        self._members: dict[tuple[System, tuple[object, ...]], Member | str] = {}
        self._scheduler: SharedScheduler | None = None
        self._size = 0  # bytes of its regions
        self._stack = ExitStack()
        weakref.finalize(self, self._stack.close).atexit = False

    def minimize(self, state: State, rows: Sequence[int], options: Mapping[str, Any]) -> MinimizeBatch:
        """Minimise rows, leave them evaluated at their minima, and give their results in the order of `rows`.

        options : of Minimizer. Raises InputError for options that do not exist, or are the ensemble's.
        """
        begin, own = time.perf_counter(), state.energy_options
        if twice := [name for name in options if name in own or name in ("frozen", "device")]:
            raise InputError(f"{twice[0]} is the ensemble's own; leave it out")
        check_options(options)
        found: Found = {}
        batches = list(self._structures(state, rows, options, found))
        try:
            self._run(state, batches, options.get("max_seconds"), found)
        except BaseException:
            self._forget()
            raise
        good = {k: of.positions for k, of in found.items() if isinstance(of, MinimizeResult)}
        if good:
            state.place(list(good), list(good.values()))
        state.evaluate(list(rows))
        results = [found[k] for k in rows]
        errors = {place: result for place, result in enumerate(results) if isinstance(result, str)}
        there = [None if isinstance(result, str) else result for result in results]
        return MinimizeBatch(there, errors, time.perf_counter() - begin)

    def _structures(
        self, state: State, rows: Sequence[int], options: Mapping[str, Any], found: Found
    ) -> Iterator[list[SharedSeated]]:
        """Give the structures of rows by molecule. found : gets why others are none"""
        chosen = np.unique(np.array(rows, np.int64))
        for there, system in state.by_system(chosen):
            own_rows = chosen[there].tolist()
            member = self._member(state, system, own_rows[0], options)
            if isinstance(member, str):
                found |= dict.fromkeys(own_rows, member)
                continue
            structures, errors = member.structures(
                own_rows, np.stack(state.read_positions(own_rows)), [~state.frozen[k] for k in own_rows],
                values_of_rows(state, system, own_rows),
            )  # fmt: skip
            found |= errors
            yield structures

    def _member(self, state: State, system: System, k: int, options: Mapping[str, Any]) -> Member | str:
        """Prepare the molecule of row k for some options, once; give it, or why it cannot be."""
        key = system, tuple(sorted((name, repr(value)) for name, value in options.items()))
        if key not in self._members:
            if len(self._members) >= MOST_MEMBERS:
                self._forget()
            try:
                minimizer = Minimizer(state.atoms[k], **options, **state.energy_options, device=state.device)
                self._members[key] = Member(minimizer)
            except InputError as error:
                self._members[key] = str(error)
        return self._members[key]

    def _run(self, state: State, batches: Sequence[list[SharedSeated]], limit: float | None, found: Found) -> None:
        """Minimise structures, for so many seconds at most."""
        members = [batch[0].member for batch in batches if batch]
        if not members:
            return
        needed = sum(of.shared.size for of in members)
        needed += sum(len(batch) * batch[0].member.own.size for batch in batches if batch)
        scheduler = self._scheduler_for(state.device, state.precision, needed, max(of.size for of in members))
        scheduler.begin(limit)
        for done in scheduler.minimized(iter(batches)):
            found |= {structure.number: structure.result for structure in done}

    def _scheduler_for(self, device: Device, precision: str, needed: int, least: int) -> SharedScheduler:
        """Give a scheduler with so many bytes for its regions, or as many as there may be, at least `least`.

        Raises DeviceMemoryError if a structure has no room.
        """
        most = max(least, most_bytes(device))
        if least > device.largest_buffer:
            raise DeviceMemoryError(
                f"a row takes {least / 2**30:.1f} GiB while it is minimised; {device} has buffers of "
                f"{device.largest_buffer / 2**30:.1f} GiB at most"
            )
        if self._scheduler is None or self._size < min(needed, most):
            self._size = min(max(needed, 2 * self._size), most)
            self._scheduler = None
            self._stack.close()  # which gives the queues back, and waits for what is left
            self._scheduler = SharedScheduler(device, precision, self._stack, self._size)
        return self._scheduler

    def _forget(self) -> None:
        """Give up all that is prepared."""
        self._members.clear()
        self._scheduler = None
        self._stack.close()
