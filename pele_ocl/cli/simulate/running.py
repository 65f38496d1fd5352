"""Run of a simulation, here or by workers, with its progress."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...common.errors import InputError
from ...dynamics import Simulation
from ...dynamics.spec import SimulateSpec
from ...jobs import Journal, Place
from ...jobs.running import run_with
from ..progress import ProgressLine
from ..terminal import note

SECONDS_A_DAY = 86_400.0
_SHARED = ("precision", "dynamics", "steps", "time_ps")
Result = Mapping[str, Any]  # of a part


@dataclass(frozen=True)
class SimulationOutcome:
    """End of a run, of all its parts.

    shared : what all parts have in common, by the names of a part's result; all their devices and notes
    rows : of the tables, of each replica; exchanges : between neighbouring temperatures
    seconds : of the steps; ns_per_day : in all, and of a replica; 0 if no steps were left to make
    """

    shared: Result
    rows: list[dict[str, Any]]
    exchanges: list[dict[str, Any]]
    seconds: float
    ns_per_day: dict[str, float]

    @classmethod
    def of(cls, parts: list[Result], seconds: float | None) -> SimulationOutcome:
        """Put the results of parts together; seconds : of all of them, None if one process had them one by one"""
        own = [part["seconds"]["steps"] for part in parts]
        in_all = sum(own) if seconds is None else seconds
        ns = 1e-6 * parts[0]["dynamics"]["timestep"] * SECONDS_A_DAY
        made = sum(part["n_replica_steps_made"] for part in parts)
        exchanges = [dict(exchange) for exchange in parts[0]["exchanges"]]
        for part in parts[1:]:
            for exchange, more in zip(exchanges, part["exchanges"], strict=True):
                exchange["tried"] += more["tried"]
                exchange["accepted"] += more["accepted"]
        rate = {
            "all": ns * made / max(in_all, 1e-9),
            "replica": ns * sum(part["n_steps_made"] for part in parts) / max(sum(own), 1e-9),
        }
        shared = {name: parts[0][name] for name in _SHARED}
        shared["device"] = ", ".join(dict.fromkeys(part["device"] for part in parts))
        shared["notes"] = list(dict.fromkeys(sentence for part in parts for sentence in part["notes"]))
        shared["notes_of_structures"] = [pair for part in parts for pair in part["notes_of_structures"]]
        return cls(shared, [row for part in parts for row in part["rows"]], exchanges, in_all, rate)

    @property
    def n_failed(self) -> int:
        """Count the replicas that stopped."""
        return sum(row["error"] is not None for row in self.rows)


def run(spec: SimulateSpec, place: Place) -> SimulationOutcome:
    """Make all steps of all parts, and the tables of the run. Raises what the first part that failed said."""
    parts = spec.items()
    if place.is_remote:
        found, begin = list[Result](), time.perf_counter()
        with ProgressLine("Simulating") as progress, Journal(None, {}) as journal:
            records = list(progress.counting(run_with(spec, parts, journal, False, place), parts))
        for record in records:
            if record.failed:
                raise InputError(record.error)
            found.append(record.result)
        outcome = SimulationOutcome.of(found, time.perf_counter() - begin)
        _tell(outcome.shared["notes"])
        _tell(f"{structure}: {sentence}" for structure, sentence in outcome.shared["notes_of_structures"])
    else:
        with Pace(spec.n_steps) as pace:
            watched = replace(spec, watch=pace.watch)
            outcome = SimulationOutcome.of([watched.compute(part) for part in parts], None)
    spec.join()
    return outcome


def _tell(notes: Iterable[str]) -> None:
    for sentence in notes:
        note(f"Note: {sentence}")


class Pace(ProgressLine):
    """Progress of a part, with the time that is simulated in a day, in all and of a replica."""

    def __init__(self, n_steps: int) -> None:
        super().__init__("Simulating")
        self._n_steps, self._has_told = n_steps, False
        self._simulation: Simulation | None = None

    def __enter__(self) -> Pace:
        return self

    def watch(self, simulation: Simulation) -> None:
        """Look at a simulation before its first step, and after each report."""
        if self._simulation is not None:
            self(simulation.steps / self._n_steps)
        else:
            if not self._has_told:
                _tell(simulation.notes)
            self._simulation, self._first, self._has_told = simulation, simulation.steps, True
            self.start = time.monotonic()
        if simulation.steps == self._n_steps:
            self._simulation = None  # so that the next part has its room

    def told(self, share: float, seconds: float) -> str:
        simulation = self._simulation
        assert simulation is not None
        made = share * self._n_steps - self._first
        of_one = made * simulation.settings.dt * 1e-3 / max(seconds, 1e-9) * SECONDS_A_DAY
        left = seconds * (self._n_steps * (1 - share)) / max(made, 1)
        all_ = of_one * (len(simulation) - len(simulation.errors))
        return f"{100 * share:3.0f} %, {all_:,.4g} ns/day in all, {of_one:,.4g} a replica, {left:.0f} s left"
