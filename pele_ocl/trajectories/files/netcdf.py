"""AMBER's NetCDF trajectories and restarts: the classic format, read here, and NetCDF 4, which is HDF5.

The classic format is that of the NetCDF User's Guide, appendix B; names of variables are those of AMBER's convention
(ambermd.org/netcdf). Frames are records of one length, so that no library is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...errors import FormatError
from .framefile import AtomChoice, FrameFile, Positions, RecordFile
from .hdf5 import Hdf5File

_HDF5 = b"\x89HDF\r\n\x1a\n"
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}  # bytes, by nc_type
_FLOATS = {5: ">f4", 6: ">f8"}
_STREAMING = 2**32 - 1  # in place of the number of records
_MOST = 2**20  # dimensions, attributes or characters that a header of a trajectory may have


@dataclass(frozen=True)
class _Variable:
    shape: tuple[int, ...]  # 0 stands for the records
    kind: int
    begin: int
    attributes: dict[str, bytes]

    @property
    def size(self) -> int:
        """Bytes of one record, or of the whole variable where it has none, padded to 4."""
        return -(-math.prod(n for n in self.shape if n) * _SIZES[self.kind] // 4) * 4


class _Header:
    """The header of a classic file. Raises ValueError or struct-like errors as ValueError where it is damaged."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._version = stream.read(4)[3]
        if self._version not in (1, 2, 5):
            raise ValueError(f"version {self._version}")
        self._count = 8 if self._version == 5 else 4
        self.n_records = self._integer(self._count)
        self.dimensions = [self._dimension() for _ in range(self._list())]
        self._attributes()
        self.variables = dict(self._variable() for _ in range(self._list()))

    @property
    def record_size(self) -> int:
        """Bytes of a record of all variables that have records."""
        having = [variable for variable in self.variables.values() if variable.shape[:1] == (0,)]
        if len(having) == 1:  # which alone is not padded
            return math.prod(having[0].shape[1:]) * _SIZES[having[0].kind]
        return sum(variable.size for variable in having)

    def _integer(self, size: int) -> int:
        data = self._stream.read(size)
        if len(data) < size:
            raise ValueError("the header ends too early")
        return int.from_bytes(data, "big")

    def _length(self) -> int:
        n = self._integer(self._count)
        if n > _MOST:
            raise ValueError("the header is damaged")
        return n

    def _list(self) -> int:
        """How many things follow, after their tag."""
        self._integer(4)
        return self._length()

    def _bytes(self, n: int) -> bytes:
        data = self._stream.read(-(-n // 4) * 4)
        return data[:n]

    def _name(self) -> str:
        return self._bytes(self._length()).decode("utf-8", "replace")

    def _dimension(self) -> int:
        self._name()
        return self._integer(self._count)

    def _attributes(self) -> dict[str, bytes]:
        found = {}
        for _ in range(self._list()):
            name, kind = self._name(), self._integer(4)
            found[name] = self._bytes(self._length() * _SIZES.get(kind, 1))
        return found

    def _variable(self) -> tuple[str, _Variable]:
        name = self._name()
        places = [self._integer(self._count) for _ in range(self._length())]
        attributes, kind = self._attributes(), self._integer(4)
        self._integer(self._count)  # the size, which is computed, as 32 bits may not hold it
        begin = self._integer(4 if self._version == 1 else 8)
        if kind not in _SIZES or any(place >= len(self.dimensions) for place in places):
            raise ValueError("the header is damaged")
        return name, _Variable(tuple(self.dimensions[place] for place in places), kind, begin, attributes)


class NetcdfFile(RecordFile):
    """A trajectory or restart in the classic format."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as stream:
            try:
                header = _Header(stream)
            except ValueError as error:
                raise FormatError(f"{path}: cannot be read as NetCDF ({error}); copy the file again") from None
        found = header.variables.get("coordinates")
        if found is None or found.kind not in _FLOATS or found.shape[-1:] != (3,) or len(found.shape) not in (2, 3):
            raise FormatError(
                f"{path}: has no variable `coordinates` of atoms' x, y and z; an AMBER trajectory has one"
            )
        self._type = np.dtype(_FLOATS[found.kind])
        self._factor = _factor(found, path)
        n, has_records = found.shape[-2], found.shape[0] == 0 and len(found.shape) == 3
        bytes_a_frame = n * 3 * self._type.itemsize
        if len(found.shape) == 2:
            super().__init__(path, n, found.begin, bytes_a_frame, 1)
            self._start = 0
        elif not has_records:
            super().__init__(path, n, found.begin, bytes_a_frame, found.shape[0])
            self._start = 0
        else:
            first = min(v.begin for v in header.variables.values() if v.shape[:1] == (0,))
            n_frames = None if header.n_records == _STREAMING else header.n_records
            super().__init__(path, n, first, header.record_size, n_frames)
            self._start = found.begin - first
        self._end = self._start + bytes_a_frame

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        values = self.raw(frames)[:, self._start : self._end].view(self._type).reshape(len(frames), self.n_atoms, 3)
        positions: Positions = values[:, atoms].astype(self._type.newbyteorder("="))
        return positions if self._factor == 1 else positions * positions.dtype.type(self._factor)


def _factor(found: _Variable, path: Path) -> float:
    """The factor from stored values to A."""
    unit = found.attributes.get("units", b"angstrom").rstrip(b"\0 ").lower()
    if unit not in (b"angstrom", b"angstroms", b"a"):
        raise FormatError(f"{path}: its coordinates are in {unit.decode('ascii', 'replace')}; Angstrom are needed")
    stored = found.attributes.get("scale_factor", b"")
    if len(stored) not in (4, 8):
        return 1.0
    return float(np.frombuffer(stored, f">f{len(stored)}")[0])


def open_netcdf(path: Path) -> FrameFile:
    """An AMBER NetCDF file of either kind; raises FormatError for other files."""
    with open(path, "rb") as stream:
        magic = stream.read(8)
    if magic == _HDF5:
        return Hdf5File(path)
    if not magic.startswith(b"CDF"):
        raise FormatError(f"{path}: not a NetCDF file; does its suffix belong to it?")
    return NetcdfFile(path)
