"""Trajectories that simulations write: AMBER's NetCDF, DCD, GROMACS' XTC, HDF5."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..atoms import Floats
from ..extras import extra
from .conformation_files import INTERVAL, ConformationFormat, Content, Hdf5Format, NetcdfFormat

_AKMA = 0.04888821290839616  # ps of CHARMM's unit of time
_NANOMETER = 0.1  # of an A


class DcdFormat(ConformationFormat):
    """Frames of float32 coordinates in A, as CHARMM writes them without a cell; without names."""

    has_gaps = True

    def __init__(self, content: Content) -> None:
        self._n_atoms = len(content.atoms)
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))
        self._frame_bytes = 3 * (4 * self._n_atoms + 8)

    def head(self) -> bytes:
        numbers = np.zeros(20, "<i4")
        numbers[[1, 2, 19]] = 0, 1, 24  # first step, steps between frames, CHARMM's version
        numbers[9:10] = np.array([self._interval / _AKMA], "<f4").view("<i4")
        title = np.array([1], "<i4").tobytes() + b"written by pele-ocl".ljust(80)
        return b"".join(map(_record, (b"CORD" + numbers.tobytes(), title, np.array([self._n_atoms], "<i4").tobytes())))

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full((self._n_atoms, 3), np.nan) if positions is None else positions
        return b"".join(_record(axis.astype("<f4").tobytes()) for axis in values.T)

    def grown(self, stream: io.FileIO, size: int) -> None:
        n = np.array((size - len(self.head())) // self._frame_bytes, "<i4").tobytes()
        for place in (8, 20):  # frames, and steps
            stream.seek(place)
            stream.write(n)


def _record(data: bytes) -> bytes:
    """Write a record of Fortran's, between marks of its length."""
    mark = np.array(len(data), "<i4").tobytes()
    return mark + data + mark


class XtcFormat(ConformationFormat):
    """Frames of coordinates rounded to 0.01 A, through MDTraj; without names."""

    def __init__(self, content: Content) -> None:
        self._interval = float(str(content.attributes.get(INTERVAL, 1.0)))
        self._writer = extra("mdtraj.formats", "an .xtc file").XTCTrajectoryFile

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        values = (_NANOMETER * positions).astype(np.float32)[None]
        time, step = np.array([(number - 1) * self._interval], np.float32), np.array([number], np.int32)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "frame.xtc"  # frames stand one after the other, with nothing between them
            with self._writer(str(path), "w") as file:
                file.write(values, time=time, step=step, box=np.zeros((1, 3, 3), np.float32))
            return path.read_bytes()


TRAJECTORY_FORMATS: dict[str, Callable[[Content], ConformationFormat]] = {
    "nc": NetcdfFormat, "dcd": DcdFormat, "xtc": XtcFormat, "h5": Hdf5Format,
}  # fmt: skip
