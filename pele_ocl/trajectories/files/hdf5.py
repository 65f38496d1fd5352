"""Trajectories in HDF5: ours, MDTraj's, and NetCDF 4."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...formats.amber.netcdf4 import Coordinates
from .framefile import AtomChoice, FrameFile, Positions


class Hdf5File(FrameFile):
    """An HDF5 file; lengths are in A, or in the `unit` or `units` that the dataset names."""

    takes_more = False

    def __init__(self, path: Path) -> None:
        self._coordinates = Coordinates(str(path), path)
        super().__init__(path, self._coordinates.n_atoms, self._coordinates.n_frames)

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        found = self._coordinates.read(frames.start, frames.stop, frames.step)[:, atoms]
        dtype = np.float64 if found.dtype.kind in "iu" else found.dtype.newbyteorder("=")
        values: Positions = found.astype(dtype, copy=False)
        factor = self._coordinates.factor
        return values if factor == 1 else values * values.dtype.type(factor)

    def close(self) -> None:
        self._coordinates.close()
