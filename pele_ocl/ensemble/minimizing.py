"""Rows of an ensemble minimized where they are, by launches that all share."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..common.errors import InputError
from ..energy.engine.system import System
from ..minimize.driver import Driver
from ..minimize.job import Job, Protocol, Recipe
from ..minimize.options import check_options
from ..minimize.result import MinimizeBatch, MinimizeResult
from .state import State

MOST_RECIPES = 256  # molecules with options that are kept prepared
Named = tuple[tuple[str, str], ...]  # options by name, as a key

MOST_KEPT = 1 << 25  # bytes besides those of rows that are kept between calls


class RowMinimizer:
    """Minimization of the rows of an ensemble: molecules prepared once for all rows and calls, and their driver.

    Other options alone make a molecule be prepared again. Frozen atoms and references of restraints are data of rows.
    """

    def __init__(self, state: State) -> None:
        self._recipes: dict[tuple[System, Named], Recipe | str] = {}
        self._checked: set[Named] = set()  # options that there are
        stack, queue = ExitStack(), state.resident.queue
        self._driver = Driver(queue, stack.enter_context(queue.beside()), state.resident.store)
        stack.callback(self._driver.stop)  # waits for what is left
        weakref.finalize(self, stack.close).atexit = False

    def minimize(self, state: State, rows: Sequence[int], options: Mapping[str, Any]) -> MinimizeBatch:
        """Minimize rows, leave them evaluated at their minima, and give their results in the order of `rows`.

        options : of Minimizer. Raises InputError for options that do not exist, or are the ensemble's.
        """
        begin = time.perf_counter()
        named = tuple(sorted((name, repr(value)) for name, value in options.items()))
        if named not in self._checked:
            own = state.energy_options
            if twice := [name for name in options if name in own or name in ("frozen", "device")]:
                raise InputError(f"{twice[0]} is the ensemble's own; leave it out")
            check_options(options)
            self._checked.add(named)
        found: dict[int, MinimizeResult | str] = {}
        jobs = self._jobs(state, np.unique(np.array(rows, np.int64)), options, named, found)
        if jobs:
            try:
                self._run(jobs, options.get("max_seconds"))
            except BaseException:
                self._forget()
                put_back(state, jobs)
                raise
            found |= {job.number: job.result for job in jobs}
            done = [job for job in jobs if not isinstance(job.result, str)]
            if len(done) < len(jobs):
                put_back(state, [job for job in jobs if isinstance(job.result, str)])
            if done:
                state.minimized([job.number for job in done], [job.offset for job in done])
        if failed := [k for k in rows if isinstance(found[k], str)]:
            state.evaluate(failed)
        results = [found[k] for k in rows]
        errors = {place: result for place, result in enumerate(results) if isinstance(result, str)}
        there = [None if isinstance(result, str) else result for result in results]
        return MinimizeBatch(there, errors, time.perf_counter() - begin)

    def _jobs(
        self, state: State, rows: np.ndarray[Any, np.dtype[np.int64]], options: Mapping[str, Any],
        named: Named, found: dict[int, MinimizeResult | str],
    ) -> list[Job]:  # fmt: skip
        """Give the structures of rows. named : the options as a key; found : gets why others are none"""
        jobs: list[Job] = []
        for there, system in state.by_system(rows):
            own_rows = rows[there]
            recipe = self._recipe(system, options, named)
            if isinstance(recipe, str):
                found |= dict.fromkeys(own_rows.tolist(), recipe)
                continue
            encoded, offsets = state.encoded(own_rows.tolist()), state.offsets[own_rows]
            given = system.passes.decode(encoded) + offsets[:, None]
            free = [~state.frozen[k] for k in own_rows.tolist()]
            own, errors = recipe.jobs(own_rows.tolist(), given, free, encoded, offsets, state.resident.own[own_rows])
            found |= {k: str(error) for k, error in errors.items()}
            jobs += own
        return jobs

    def _recipe(self, system: System, options: Mapping[str, Any], named: Named) -> Recipe | str:
        """Prepare a molecule for some options, once; give it, or why it cannot be."""
        key = system, named
        if key not in self._recipes:
            if len(self._recipes) >= MOST_RECIPES:
                self._forget()
            try:
                self._recipes[key] = Recipe(system, Protocol(system.energy, **options), is_resident=True)
            except InputError as error:
                self._recipes[key] = str(error)
        return self._recipes[key]

    def _run(self, jobs: Sequence[Job], limit: float | None) -> None:
        """Minimize structures, for so many seconds at most."""
        driver = self._driver
        driver.make_room(jobs)
        driver.begin(limit)
        for _ in driver.minimized(iter([jobs])):
            pass
        if driver.size > MOST_KEPT:
            driver.reset()

    def _forget(self) -> None:
        """Give up all that is prepared."""
        self._recipes.clear()
        self._driver.stop()
        self._driver.reset()


def put_back(state: State, jobs: Sequence[Job]) -> None:
    """Place rows where they were before they were to be minimized."""
    state.put_back([job.number for job in jobs], [job.origin for job in jobs])
