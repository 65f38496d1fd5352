"""Reader of AMBER's NetCDF trajectories and restarts: the classic format and NetCDF 4 (HDF5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...common.errors import FormatError
from ...contract import cells_of
from ...formats.amber.netcdf import HDF5, MAGICS, read_frames
from .framefile import AtomChoice, FrameFile, Positions, RecordFile
from .hdf5 import open_hdf5


class NetcdfFile(RecordFile):
    """A trajectory or restart in the classic format."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as stream:
            found = read_frames(str(path), stream)
        super().__init__(path, found.n_atoms, found.begin, found.stride, found.n_frames)
        self._type, self._factor, self._start = found.dtype, found.factor, found.start
        self._end = self._start + 3 * found.n_atoms * found.dtype.itemsize
        self._cell, self._only_cell = (None, None) if found.has_one_cell else (found.cell, None)
        if found.has_one_cell:
            with open(path, "rb") as stream:
                self._only_cell = found.cell_of(stream, 0)

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        raw = self.raw(frames)
        values = raw[:, self._start : self._end].view(self._type).reshape(len(frames), self.n_atoms, 3)
        if self._cell is not None:
            self.cells = cells_of(*(place.read(raw) for place in self._cell))
        elif self._only_cell is not None:
            self.cells = np.repeat(self._only_cell[np.newaxis], len(frames), axis=0)
        positions: Positions = values[:, atoms].astype(self._type.newbyteorder("="))
        return positions if self._factor == 1 else positions * positions.dtype.type(self._factor)


def open_netcdf(path: Path) -> FrameFile:
    """Open an AMBER NetCDF file in either format. Raises FormatError for other files."""
    with open(path, "rb") as stream:
        magic = stream.read(len(HDF5))
    if magic == HDF5:
        return open_hdf5(path)
    if not magic.startswith(MAGICS):
        raise FormatError(f"{path}: not a NetCDF file; is its suffix correct?")
    return NetcdfFile(path)
