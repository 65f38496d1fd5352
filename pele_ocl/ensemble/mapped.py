"""Memory of a CPU device as NumPy arrays: what rows have there, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..atoms import Floats
from ..common.errors import InputError
from ..energy.engine import System
from ..opencl.interface import N_TERMS
from .state import State

Arrays = NDArray[Any] | list[NDArray[Any] | None]


@dataclass(frozen=True)
class MappedRows:
    """Arrays over the memory of a CPU device, without a copy, as long as the block of `Ensemble.mapped` lasts.

    Arrays of rows are one, (n_rows, ...), if all rows are of one molecule; else a list, with None for a row without
    a molecule. NumPy, torch and JAX take them by `from_dlpack`, too.

    positions : (n_rows, n, 3) A from `origins`; gradients : (n_rows, n, 3) kcal/mol/A, None without any
    born_radii : (n_rows, n) A; energies : (n_rows,) kcal/mol
    origins : (n_rows, 3) A, a copy; `positions[k] + origins[k]` is what `Ensemble.positions[k]` gives
    """

    positions: Arrays
    gradients: Arrays | None
    born_radii: Arrays
    energies: NDArray[Any]
    origins: Floats


@contextmanager
def mapped(state: State) -> Iterator[MappedRows]:
    """Map what rows have; the host must not use the arrays after the block.

    Raises InputError for a device that is no CPU, and for one without float64, whose positions are integers.
    """
    device = state.device
    if device.kind != "CPU" or state.coordinate.kind == "i":
        which = "has memory of its own"
        if device.kind == "CPU":
            which = "has no float64, and so keeps positions as integers"
        raise InputError(f"{device} {which}; read positions[:] and gradients[:] in place of mapping them")
    queue = state.queue
    size, n = state.bytes_on_device.size, len(state)
    with queue.mapped(state.bytes_on_device, (size,), np.uint8) as memory:
        with queue.mapped(state.energies_on_device, (n,), state.fine) as energies:
            yield _rows(state, memory, energies)


def _rows(state: State, memory: NDArray[np.uint8], energies: NDArray[Any]) -> MappedRows:
    """Lay arrays of all rows over the memory of the device."""
    real = np.dtype(state.precision)

    def arrays(place: Callable[[System], tuple[int, tuple[int, ...]]], dtype: DTypeLike) -> Arrays:
        """Make the array of each row. place : of a molecule, its first byte in a row and its shape"""
        kind, found = np.dtype(dtype), list[NDArray[Any] | None]()
        for k, system in enumerate(state.systems):
            if system is None:
                found.append(None)
                continue
            first, shape = place(system)
            first += int(state.own[k])
            found.append(memory[first : first + int(np.prod(shape)) * kind.itemsize].view(kind).reshape(shape))
        return _as_one(found, state.systems, state.own)

    def results(system: System, first: int, columns: int) -> tuple[int, tuple[int, ...]]:
        """Columns of the atoms in the results, from the place `first` of the Born radii on."""
        n, n_energies = len(system.passes.atoms), system.passes.n_energies
        begin = system.pieces["results"].first + (N_TERMS * n_energies + first * n) * real.itemsize
        return begin, (n, columns) if columns > 1 else (n,)

    has_gradient = state.options["gradient"]
    origins = np.array([np.zeros(3) if system is None else system.origin for system in state.systems])
    return MappedRows(
        positions=arrays(lambda of: (of.pieces["positions"].first, (len(of.passes.atoms), 3)), state.coordinate),
        gradients=arrays(lambda of: results(of, 1, 3), real) if has_gradient else None,
        born_radii=arrays(lambda of: results(of, 0, 1), real),
        energies=energies, origins=origins + state.offsets,
    )  # fmt: skip


def _as_one(arrays: Sequence[NDArray[Any] | None], systems: Sequence[object], firsts: NDArray[np.uint64]) -> Arrays:
    """Make one array of all rows if they are of one molecule, and so lie one after another; else give the list."""
    first = arrays[0]
    if first is None or any(system is not systems[0] for system in systems):
        return list(arrays)
    step = int(firsts[1] - firsts[0]) if len(firsts) > 1 else first.nbytes
    return np.lib.stride_tricks.as_strided(first, (len(arrays), *first.shape), (step, *first.strides))
