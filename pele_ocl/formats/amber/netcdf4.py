"""Coordinates in HDF5: a dataset `positions` or `coordinates` (m, n, 3), as we, MDTraj and NetCDF 4 have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...contract import cells_of
from ...errors import FormatError

if TYPE_CHECKING:
    import h5py

HDF5 = b"\x89HDF\r\n\x1a\n"  # a file begins so
_NAMES = ("positions", "coordinates")
_ANGSTROM = {"angstrom": 1.0, "angstroms": 1.0, "a": 1.0, "nanometer": 10.0, "nanometers": 10.0, "nm": 10.0}


class Coordinates:
    """The coordinates of an HDF5 file that is open.

    n_frames, n_atoms : a dataset (n, 3), as a restart has, is one frame
    dtype : of the numbers
    offset : where in the file they stand, in order, as NumPy has them; None where they are compressed or in chunks
    factor : from the numbers to A, by the `unit` or `units` and the `scale_factor` of the dataset
    """

    def __init__(self, where: str, source: Path | BinaryIO) -> None:
        import h5py  # takes a tenth of a second to load

        self.where = where
        try:
            self._file = h5py.File(source, "r")
        except OSError as error:
            raise FormatError(f"{where}: cannot be read as HDF5 ({error}); copy the file again") from None
        try:
            self._learn()
        except BaseException:
            self._file.close()
            raise

    def _learn(self) -> None:
        values = next((self._file[name] for name in _NAMES if name in self._file), None)
        shape: tuple[int, ...] = getattr(values, "shape", ())
        if values is None or len(shape) not in (2, 3) or shape[-1] != 3:
            raise FormatError(f"{self.where}: has no dataset `positions` or `coordinates` of shape (frames, atoms, 3)")
        self._values, self.dtype, self.offset = values, values.dtype, _offset(values)
        self.n_frames, self.n_atoms = shape[0] if len(shape) == 3 else 1, shape[-2]
        unit = values.attrs.get("unit", values.attrs.get("units", "angstrom"))
        unit = unit.decode("utf-8", "replace") if isinstance(unit, bytes) else str(unit)
        if unit.lower() not in _ANGSTROM:
            raise FormatError(f"{self.where}: its positions are in {unit!r}; angstrom or nanometers are needed")
        self._cell = [self._file.get(name) for name in ("cell_lengths", "cell_angles")]
        self.factor = _ANGSTROM[unit.lower()] * float(np.ravel(values.attrs.get("scale_factor", 1.0))[0])

    def read(self, start: int, stop: int, step: int = 1) -> NDArray[Any]:
        """The numbers of some frames, (m, n_atoms, 3). Raises FormatError where they are damaged."""
        try:
            found = np.asarray(self._values[start:stop:step] if self._values.ndim == 3 else self._values[()])
        except OSError as error:
            raise FormatError(f"{self.where}: cannot be read ({error}); copy the file again") from None
        return found.reshape(-1, self.n_atoms, 3)

    def cells(self, start: int, stop: int, step: int = 1) -> NDArray[np.float64] | None:
        """The unit cells (m, 3, 3) A of some frames, NaN where one has none; None where the file has no cells."""
        numbers = []
        for values in self._cell:
            if getattr(values, "shape", ())[-1:] != (3,) or len(values.shape) > 2:
                return None
            rows = np.asarray(values[start:stop:step] if len(values.shape) == 2 else values[()], np.float64)
            if len(rows.reshape(-1, 3)) != len(range(start, stop, step)):
                return None
            numbers.append(rows.reshape(-1, 3))
        unit = self._cell[0].attrs.get("units", self._cell[0].attrs.get("unit"))
        text = unit.decode("utf-8", "replace") if isinstance(unit, bytes) else unit
        # MDTraj's cells are in nm; without a unit they are in that of the positions
        factor = self.factor if text is None else _ANGSTROM.get(str(text).lower(), np.nan)
        return cells_of(numbers[0] * factor, numbers[1])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _offset(values: h5py.Dataset) -> int | None:
    """Where in the file the numbers of a dataset stand, in order, as NumPy has them."""
    import h5py

    is_known = values.id.get_type() == h5py.h5t.py_create(values.dtype)
    return values.id.get_offset() if is_known and values.size else None  # which is None for numbers in chunks, too


@contextmanager
def opened_coordinates(where: str, source: Path | BinaryIO) -> Iterator[Coordinates]:
    """The coordinates of an HDF5 file, which is closed when the block ends; where : path, for messages."""
    found = Coordinates(where, source)
    try:
        yield found
    finally:
        found.close()
