"""Run of a simulation from report to report, with its progress."""

from __future__ import annotations

import time

from ...dynamics import Simulation
from ..progress import ProgressLine
from ..terminal import note
from .recording import SimulationFiles

SECONDS_A_DAY = 86_400.0


def run(
    simulation: Simulation, recorder: SimulationFiles, n_steps: int, every: int, minimizes: int, resume: bool
) -> tuple[float, int]:
    """Make all steps and write what comes of them. Returns the seconds of the steps, and how many were made."""
    if not recorder.begin(resume):
        if minimizes:
            batch = simulation.minimize(max_iterations=minimizes)
            for place, reason in batch.errors.items():
                note(f"Note: replica {recorder.replicas[place]} begins where it is: {reason}")
        recorder.write_structures()
        recorder.record(1, is_last=False)
    first, begin = simulation.steps, time.perf_counter()
    with Pace(simulation, n_steps) as pace:
        while simulation.steps < n_steps:
            simulation.run(min(every - simulation.steps % every, n_steps - simulation.steps))
            recorder.record(1 + -(-simulation.steps // every), is_last=simulation.steps == n_steps)
            pace(simulation.steps / n_steps)
    return time.perf_counter() - begin, simulation.steps - first


class Pace(ProgressLine):
    """Progress with the time that is simulated in a day, of all replicas and of each."""

    def __init__(self, simulation: Simulation, n_steps: int) -> None:
        super().__init__("Simulating")
        self._simulation, self._n_steps, self._first = simulation, n_steps, simulation.steps

    def told(self, share: float, seconds: float) -> str:
        made = share * self._n_steps - self._first
        of_one = rate(self._simulation, made, seconds)
        left = seconds * (self._n_steps * (1 - share)) / max(made, 1)
        all_ = of_one * len(self._simulation)
        return f"{100 * share:3.0f} %, {all_:,.4g} ns/day in all, {of_one:,.4g} a replica, {left:.0f} s left"


def rate(simulation: Simulation, n_steps: float, seconds: float) -> float:
    """Time in ns that a replica goes in a day of steps like these."""
    return n_steps * simulation.settings.dt * 1e-3 / max(seconds, 1e-9) * SECONDS_A_DAY
