"""Structures in the seats of a device: those that are done make room for those that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..opencl.shared import StepState, Stop
from ..plan.evaluator import Failures
from ..plan.pipeline import Pipeline
from .steps import Steps

if TYPE_CHECKING:
    from ..opencl.run import Run

LEAST_LOOK, MOST_LOOK = 4, 32  # iterations after which the host looks which structures are done
AHEAD = 1  # of them that the device does while the host looks

Look = Callable[[Floats], None]  # called with the states of the structures that go on


class Pool:
    """The conformations of one molecule on their way through the seats of an evaluator.

    final : (m, n, 3) A, where each ended; states : (m, N_STATE) as cl/minimize/state.clh has them
    """

    def __init__(self, run: Run, pipeline: Pipeline, steps: Steps, conformations: Floats, failures: Failures) -> None:
        """Those conformations that did not fail yet. failures : to which those go that no molecule has"""
        self._run, self._pipeline, self._steps = run, pipeline, steps
        self._conformations, self._failures = conformations, failures
        self.final = np.array(conformations, np.float64)
        self.states = np.zeros((len(conformations), len(StepState)))
        self._aside = np.zeros((len(conformations), 3))  # A from where a structure is computed to where it is
        self._waiting = [k for k in range(len(conformations)) if k not in failures.reasons][::-1]
        self._seats: list[int] = []
        self._evaluations: list[int] = []  # of the structure in each seat, those started included
        self._iterations = 0
        self._fill()

    def __bool__(self) -> bool:
        """Whether any structure goes on."""
        return bool(self._seats)

    def start(self) -> None:
        """Start some iterations of all structures in seats: about a sixteenth of those there were.

        The states are read before the last of them, so that the device is at work while the host looks at them.
        """
        count = min(MOST_LOOK, max(LEAST_LOOK, self._iterations // 16))
        self._iterate(count - AHEAD)
        self._steps.start_look(self._run, len(self._seats))
        self._iterate(AHEAD)
        self._run.submit()
        self._iterations += count

    def _iterate(self, count: int) -> None:
        """Start so many iterations of all structures in seats."""
        while count:
            part = min(count, self._steps.prepare(self._run, self._evaluations))
            self._steps.iterate(self._run, len(self._seats), part)
            self._evaluations = [evaluations + part for evaluations in self._evaluations]
            count -= part

    def look(self) -> Floats:
        """Wait for the states, let those go that are done, and others in; the states of those that went on."""
        states = self._steps.look(self._run, len(self._seats)).astype(np.float64)
        self.states[self._seats] = states
        for seat in np.flatnonzero(states[:, StepState.STOPPED])[::-1].tolist():
            self._release(seat)
        self._fill()
        return states

    def stop(self, reason: Stop) -> None:
        """Let all structures go as they are; those that wait never began."""
        states = self._steps.states(self._run, len(self._seats)).astype(np.float64)
        states[states[:, StepState.STOPPED] == Stop.RUNNING, StepState.STOPPED] = reason
        self.states[self._seats] = states
        for seat in range(len(self._seats) - 1, -1, -1):
            self._release(seat)
        self.states[self._waiting, StepState.STOPPED] = reason
        self._waiting.clear()

    def _release(self, seat: int) -> None:
        """Fetch the structure of a seat, into which the last one moves."""
        encoded, k = self._steps.positions(self._run, seat), self._seats[seat]
        self.final[k] = self._pipeline.decode(encoded[np.newaxis])[0] + self._aside[k]
        last = len(self._seats) - 1
        if seat < last:
            self._steps.move(self._run, last, seat)
            self._seats[seat], self._evaluations[seat] = self._seats[last], self._evaluations[last]
        self._seats.pop()
        self._evaluations.pop()

    def _fill(self) -> None:
        """Let those in that wait."""
        encoded = np.empty((1, self._conformations[0].size), self._pipeline.passes.encoding.dtype)
        while self._waiting and len(self._seats) < self._pipeline.batch:
            k = self._waiting.pop()
            self._pipeline.encode(self._conformations, slice(k, k + 1), encoded, self._failures)
            if k not in self._failures.reasons:
                self._aside[k] = self._pipeline.aside(self._conformations[k], encoded)
                self._steps.load(self._run, len(self._seats), encoded[0])
                self._seats.append(k)
                self._evaluations.append(0)
