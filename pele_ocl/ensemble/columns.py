"""Arrays of an ensemble: per row, as mapped memory of a CPU device, and arrays of drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..atoms import Floats
from ..common.arguments import described
from ..common.errors import InputError
from ..energy.engine import System
from ..opencl.interface import N_TERMS
from .state import Lock, RowsLike, State, locked


class Column:
    """Arrays of rows: `column[3]` is the array of one row; `column[:]` one array for all, or a list if sizes differ.

    Rows are selected by a number, a slice, a list of numbers, or a mask (n_rows,). If the column is writable,
    `column[rows] = arrays` accepts an array for a single row, one for each, or one for all. Iteration is over rows.
    `numpy.asarray(column)` is `column[:]`, with its `shape`, `dtype` and `ndim`; `shape` raises InputError if sizes
    differ.
    """

    def __init__(
        self, state: State, read: Callable[[list[int]], Sequence[NDArray[Any]] | NDArray[Any]],
        write: Callable[[list[int], Any], object] | None = None, ndim: int = 2,
    ) -> None:  # fmt: skip
        """ndim : number of dimensions of the array of a row"""
        self._state, self._read, self._write, self._ndim = state, read, write, ndim

    @property
    def _lock(self) -> Lock:
        return self._state.lock

    def __len__(self) -> int:
        return len(self._state)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])  # all rows in one read

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `column[:]`, (n_rows, ...)."""
        arrays = self._of_each_molecule()
        self._require_one_shape(arrays)
        return len(self), *arrays[0].shape

    @property
    def ndim(self) -> int:
        """Number of dimensions of `column[:]`."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of `column[:]`."""
        return self._of_each_molecule()[0].dtype

    @locked
    def _of_each_molecule(self) -> Sequence[NDArray[Any]] | NDArray[Any]:
        """Arrays of one row per molecule."""
        self._state.chosen(None)
        return self._read(list({id(atoms): k for k, atoms in enumerate(self._state.atoms)}.values()))

    def _require_one_shape(self, arrays: Sequence[NDArray[Any]] | NDArray[Any]) -> None:
        shapes = list(dict.fromkeys(array.shape for array in arrays))
        if len(shapes) > 1:
            raise InputError(
                f"rows have arrays of the different shapes {shapes[0]} and {shapes[1]}; choose rows of one molecule"
            )

    @locked
    def __getitem__(self, rows: RowsLike) -> Any:
        chosen = self._state.chosen(rows).tolist()
        arrays = self._read(chosen)
        if isinstance(rows, int | np.integer):
            return arrays[0]
        if isinstance(arrays, np.ndarray):
            return arrays
        return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays

    @locked
    def __setitem__(self, rows: RowsLike, values: Any) -> None:
        if self._write is None:
            raise InputError("these arrays are results; they cannot be written")
        chosen = self._state.chosen(rows).tolist()
        if isinstance(rows, int | np.integer):
            values = [values]
        elif isinstance(values, np.ndarray | float | int) and np.ndim(values) <= self._ndim:
            values = [values] * len(chosen)
        if not hasattr(values, "__len__"):
            raise InputError(
                f"the values are {described(values)}; expected an array, or one for each of {len(chosen):,} rows"
            )
        if len(values) != len(chosen):
            raise InputError(f"there are {len(chosen)} rows to write and {len(values)} arrays")
        if not chosen:
            return
        if isinstance(values, np.ndarray) and len(set(chosen)) == len(chosen):
            self._write(chosen, values)
            return
        last = dict(zip(chosen, values, strict=True))  # the last value of a repeated row
        self._write(list(last), list(last.values()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        arrays = self[:]
        self._require_one_shape(arrays)
        return np.asarray(arrays, dtype)

    def __repr__(self) -> str:
        return f"Column({len(self):,} rows)"


class WritableValues(np.ndarray[tuple[Any, ...], np.dtype[np.float64]]):
    """Numbers of rows, (n_rows,); `values[rows] = numbers` also changes the rows.

    In-place operators, `values += 10` or `values[2:] *= 2`, and NumPy functions with `out=values` do the same. Other
    ways of writing to the array raise ValueError. Results computed from it are plain arrays.
    """

    _write: Callable[[Floats], object] | None = None

    @classmethod
    def of(cls, values: Floats, write: Callable[[Floats], object]) -> WritableValues:
        """write : called with the new numbers of all rows, (n_rows,)"""
        found = values.view(cls)
        found._write = write
        found.flags.writeable = False
        return found

    def __getitem__(self, rows: Any) -> Any:
        found = super().__getitem__(rows)
        if isinstance(found, WritableValues) and self._write is not None and not found.flags.writeable:
            found._write = partial(self.__setitem__, rows)  # a slice, which shares memory
        return found

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute as with plain arrays; results for `out` are also written to the rows."""
        plain = [np.asarray(each) if isinstance(each, WritableValues) else each for each in inputs]
        targets = options.pop("out", ())
        if not any(isinstance(target, WritableValues) and target._write is not None for target in targets):
            if targets:
                options["out"] = tuple(np.asarray(t) if isinstance(t, WritableValues) else t for t in targets)
            return getattr(ufunc, method)(*plain, **options)
        made = tuple(np.array(t) if isinstance(t, WritableValues) else t for t in targets)
        try:
            result = getattr(ufunc, method)(*plain, out=made, **options)
        except (TypeError, ValueError) as error:
            raise InputError(f"there are {len(self)} rows, to which this cannot be assigned: {error}") from None
        values = result if isinstance(result, tuple) else (result,)
        found = []
        for target, value in zip(targets, values, strict=True):
            if isinstance(target, WritableValues):
                target[...] = value
            found.append(value if target is None else target)
        return tuple(found) if isinstance(result, tuple) else found[0]

    def __setitem__(self, rows: Any, values: Any) -> None:
        if self._write is None:  # a result computed from the array
            super().__setitem__(rows, values)
            return
        wanted = np.array(self, np.float64)
        try:
            wanted[rows] = values
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(f"there are {len(self)} rows, to which this cannot be assigned: {error}") from None
        self._write(wanted)
        self.flags.writeable = True
        super().__setitem__(slice(None), wanted)
        self.flags.writeable = False


class DeviceArray:
    """Array of a driver on the device, with a number of columns per atom or per row.

    shape : (n, columns); atoms are ordered by row; NumPy converts it to the array that `read()` returns
    """

    def __init__(self, state: State, shape: tuple[int, int], dtype: np.dtype[Any], per: str) -> None:
        self._queue, self._lock, self.shape, self.dtype, self._per = state.queue, state.lock, shape, dtype, per
        self._firsts = state.first_atoms if per == "atom" else np.arange(len(state) + 1)
        self.buffer = self._queue.zeros(shape[0] * shape[1], dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.read(), dtype)

    def __repr__(self) -> str:
        return f"DeviceArray({self.shape[1]} for each {self._per}, {self.dtype})"

    @locked
    def read(self, row: int | None = None) -> NDArray[Any]:
        """Read the array, (n, columns), or the part of one row."""
        first, end = self._part(row)
        array = np.empty((end - first, self.shape[1]), self.dtype)
        if array.size:
            self._queue.read(array, self.buffer, first * self.shape[1])
        return array

    @locked
    def write(self, values: ArrayLike, row: int | None = None) -> None:
        """Write values, broadcast to the shape of the array or of the part of one row."""
        first, end = self._part(row)
        shape = end - first, self.shape[1]
        try:
            array = np.ascontiguousarray(np.broadcast_to(np.asarray(values, self.dtype), shape))
        except (TypeError, ValueError):
            raise InputError(
                f"values are not an array of numbers of shape {shape}, and do not broadcast to it"
            ) from None
        if array.size:
            self._queue.write(self.buffer, array, first * self.shape[1])

    def _part(self, row: int | None) -> tuple[int, int]:
        """Range of a row's entries in the array. Raises InputError for an unknown row."""
        if row is None:
            return 0, self.shape[0]
        n = len(self._firsts) - 1
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not -n <= row < n:
            raise InputError(f"there are {n:,} rows, so {row!r} is invalid")
        return int(self._firsts[row % n]), int(self._firsts[row % n + 1])


Arrays = NDArray[Any] | list[NDArray[Any] | None]


@dataclass(frozen=True)
class MappedRows:
    """Arrays in the memory of a CPU device, without a copy, valid within the block of `Ensemble.mapped`.

    If all rows are of one molecule, their arrays are one array, (n_rows, ...); otherwise a list, with None for rows
    without a molecule. NumPy, torch and JAX can also import them with `from_dlpack`.

    positions : (n_rows, n, 3) A relative to `origins`; gradients : (n_rows, n, 3) kcal/mol/A, None if not computed
    born_radii : (n_rows, n) A; energies : (n_rows,) kcal/mol
    origins : (n_rows, 3) A, a copy; `Ensemble.positions[k]` is `positions[k] + origins[k]`
    """

    positions: Arrays
    gradients: Arrays | None
    born_radii: Arrays
    energies: NDArray[Any]
    origins: Floats


@contextmanager
def mapped(state: State) -> Iterator[MappedRows]:
    """Map the arrays of rows; they must not be used after the block.

    Raises InputError for devices other than CPUs, and for those without float64, which store positions as integers.
    """
    device = state.device
    if device.kind != "CPU" or state.coordinate.kind == "i":
        which = "has separate memory"
        if device.kind == "CPU":
            which = "has no float64 and stores positions as integers"
        raise InputError(f"{device} {which}; read positions[:] and gradients[:] instead of mapping them")
    queue = state.queue
    size, n = state.bytes_on_device.size, len(state)
    with queue.mapped(state.bytes_on_device, (size,), np.uint8) as memory:
        with queue.mapped(state.energies_on_device, (n,), state.fine) as energies:
            yield _rows(state, memory, energies)


def _rows(state: State, memory: NDArray[np.uint8], energies: NDArray[Any]) -> MappedRows:
    """Create views of all rows in device memory."""
    real = np.dtype(state.precision)

    def arrays(place: Callable[[System], tuple[int, tuple[int, ...]]], dtype: DTypeLike) -> Arrays:
        """Create a view of each row. place : returns the offset in a row and the shape for a molecule"""
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
        """Offset and shape of columns of the results; column 0 is the Born radius."""
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
    """Create one view of all rows if they are of one molecule and so equally spaced; otherwise return the list."""
    first = arrays[0]
    if first is None or any(system is not systems[0] for system in systems):
        return list(arrays)
    step = int(firsts[1] - firsts[0]) if len(firsts) > 1 else first.nbytes
    return np.lib.stride_tricks.as_strided(first, (len(arrays), *first.shape), (step, *first.strides))
