"""Trajectories in HDF5: a dataset `positions` or `coordinates` (m, n, 3), as we, MDTraj and NetCDF 4 have it."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from ...errors import FormatError
from .framefile import AtomChoice, FrameFile, Positions

_NAMES = ("positions", "coordinates")
_ANGSTROM = {"angstrom": 1.0, "angstroms": 1.0, "a": 1.0, "nanometer": 10.0, "nanometers": 10.0, "nm": 10.0}


class Hdf5File(FrameFile):
    """An HDF5 file; lengths are in A, or in the `unit` or `units` that the dataset names."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise FormatError(f"{path}: cannot be read as HDF5 ({error}); copy the file again") from None
        name = next((name for name in _NAMES if name in self._file), None)
        values = None if name is None else self._file[name]
        if not isinstance(values, h5py.Dataset) or values.ndim != 3 or values.shape[2] != 3:
            self._file.close()
            raise FormatError(f"{path}: has no dataset `positions` or `coordinates` of shape (frames, atoms, 3)")
        self._values = values
        unit = _text(values.attrs.get("unit", values.attrs.get("units", "angstrom")))
        if unit.lower() not in _ANGSTROM:
            self._file.close()
            raise FormatError(f"{path}: its positions are in {unit!r}; angstrom or nanometers are needed")
        self._factor = _ANGSTROM[unit.lower()]
        super().__init__(path, int(self._values.shape[1]), int(self._values.shape[0]))

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        try:
            found = np.asarray(self._values[frames.start : frames.stop : frames.step])[:, atoms]
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be read ({error}); copy the file again") from None
        values: Positions = found.astype(np.float64 if found.dtype.kind in "iu" else found.dtype.newbyteorder("="))
        return values if self._factor == 1 else values * values.dtype.type(self._factor)

    def close(self) -> None:
        self._file.close()


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
