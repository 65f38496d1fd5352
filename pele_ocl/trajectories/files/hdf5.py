"""Reader of HDF5 trajectories: those of this program and of MDTraj, and NetCDF 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Labels
from ...formats.amber.netcdf import Coordinates, opened_coordinates
from .framefile import AtomChoice, FrameFile, Positions, RecordFile


class Hdf5File(FrameFile):
    """An HDF5 file read with h5py; lengths are in A, or in the `unit` or `units` attribute of the dataset."""

    takes_more = False

    def __init__(self, path: Path, coordinates: Coordinates) -> None:
        super().__init__(path, coordinates.n_atoms, coordinates.n_frames)
        self._coordinates = coordinates

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        found = self._coordinates.read(frames.start, frames.stop, frames.step)[:, atoms]
        self.cells = self._coordinates.cells(frames.start, frames.stop, frames.step)
        return _in_angstrom(found, self._coordinates.factor)

    @property
    def labels(self) -> Labels | None:
        return self._coordinates.labels()

    def close(self) -> None:
        self._coordinates.close()


class PlainHdf5File(RecordFile):
    """An HDF5 file with uncompressed, contiguous frames, which are read without h5py.

    h5py has a global lock, so writing results would wait for reading frames.
    """

    takes_more = False

    def __init__(self, path: Path, coordinates: Coordinates, offset: int) -> None:
        n, self._dtype, self._factor = coordinates.n_atoms, coordinates.dtype, coordinates.factor
        super().__init__(path, n, offset, 3 * n * self._dtype.itemsize, coordinates.n_frames)
        self._all_cells = coordinates.cells(0, coordinates.n_frames)

    @property
    def labels(self) -> Labels | None:
        with opened_coordinates(str(self.path), self.path) as coordinates:
            return coordinates.labels()

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        values = self.raw(frames).view(self._dtype).reshape(len(frames), self.n_atoms, 3)
        if self._all_cells is not None:
            self.cells = self._all_cells[frames.start : frames.stop : frames.step]
        return _in_angstrom(values[:, atoms], self._factor)


def open_hdf5(path: Path) -> FrameFile:
    """Open an HDF5 trajectory. Raises FormatError for other files."""
    coordinates = Coordinates(str(path), path)
    if coordinates.offset is None:
        return Hdf5File(path, coordinates)
    try:
        return PlainHdf5File(path, coordinates, coordinates.offset)
    finally:
        coordinates.close()


def _in_angstrom(numbers: NDArray[Any], factor: float) -> Positions:
    """Convert stored numbers to positions as floats in native byte order."""
    dtype = np.float64 if numbers.dtype.kind in "iu" else numbers.dtype.newbyteorder("=")
    values: Positions = numbers.astype(dtype, copy=False)
    return values if factor == 1 else values * values.dtype.type(factor)
