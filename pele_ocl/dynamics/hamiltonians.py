"""Hamiltonian replica exchange, and energies of all rows in all Hamiltonians."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..common.errors import InputError
from ..ensemble.state import MOST_ROWS, Rows
from ..opencl.interface import WORD
from ..units import BOLTZMANN_KCAL

if TYPE_CHECKING:
    from types import FrameType

    from ..ensemble import Ensemble
    from ..ensemble.state import State
    from ..opencl.kernel import Arguments

ITEMS = 64  # per work-group


def bytes_of(state: State, k: int) -> int:
    """Return the size in bytes of the values specific to row k, at the start of its region."""
    return len(state.system(k).own.image)


class Swaps:
    """Swaps of Hamiltonians between partner rows of ladders, on the device."""

    def __init__(self, ensemble: Ensemble, ladders: Rows) -> None:
        state, queue = ensemble.state, ensemble.state.queue
        self._state, n = state, len(ensemble)
        by_size: dict[int, list[int]] = {}
        for k in ladders.ravel().tolist():
            if state.systems[k] is not None:
                by_size.setdefault(bytes_of(state, k) // WORD, []).append(k)
        self._rows = [(size, len(rows), queue.upload(rows, np.int32)) for size, rows in by_size.items() if size]
        self._places = queue.upload(state.own, np.uint64)
        self.before = queue.zeros(n, state.fine)
        self.partners = queue.zeros(n, np.int32)

    def swap(self, macros: dict[str, int]) -> None:
        """Enqueue a swap of each row with its partner."""
        state, queue = self._state, self._state.queue
        kernel = queue.kernel("dynamics/hamiltonians.cl", "swap_images", **macros)
        for n_words, n, rows in self._rows:
            arguments: Arguments = dict(
                n_words=n_words, rows=rows, partners=self.partners, places=self._places, bytes=state.bytes_on_device
            )
            for first in range(0, n, MOST_ROWS):
                queue.launch(kernel, (n_words, min(MOST_ROWS, n - first)), (ITEMS, 1), arguments, offset=(0, first))


def reduced_energies(ensemble: Ensemble, temperatures: Floats, ladders: Rows) -> Floats:
    """Compute the reduced energies U / (k_B T) of all rows in all states of their ladders, u_kn.

    A state is a Hamiltonian and a temperature. Each row is evaluated with the Hamiltonians of the same ladder.

    temperatures : (n_rows,) K; ladders : (n_ladders, n_states) row in each state, every row once

    Returns (n_states, n_rows), infinity where an energy is NaN. All rows are restored and evaluated before it returns.
    Raises InputError for rows of several molecules, and for failed rows.
    """
    state = ensemble.state
    rows = state.there(None)
    if len(rows) < len(ensemble) or len({id(state.systems[k]) for k in rows.tolist()}) != 1:
        raise InputError("energies of rows in each other's states need rows of one molecule, none of which failed")
    n_states, size = ladders.shape[1], bytes_of(state, 0)
    found = np.full((n_states, len(rows)), np.inf)
    queue, sizes = state.queue, np.full(len(rows), size, np.int64)
    begin = state.own[ladders]
    sources, targets = np.roll(begin, -1, axis=1).ravel(), begin.ravel()
    with uninterrupted():
        for shift in range(n_states if size else 1):  # the row in state k has the Hamiltonian of state k + shift
            state.start_evaluation(rows)
            energies, are_numbers = state.read_energies()
            states = (np.arange(n_states) + shift) % n_states
            found[states, ladders] = np.where(are_numbers, energies, np.inf)[ladders]
            if size:
                queue.move_pieces(state.bytes_on_device, state.bytes_on_device, sources, targets, sizes)
    state.changed(None, moved=False)
    state.evaluate(None)
    if not size:
        found[:] = np.where(are_numbers, energies, np.inf)
    return found / (BOLTZMANN_KCAL * temperatures[ladders[0], None])


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay keyboard interrupts until the end of a block."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    try:
        former = signal.signal(signal.SIGINT, note) if threading.current_thread() is threading.main_thread() else None
    except ValueError:  # in a subinterpreter
        former = None
    try:
        yield
    finally:
        if former is not None:
            signal.signal(signal.SIGINT, former)
    if came and callable(former):
        former(came[0], None)
