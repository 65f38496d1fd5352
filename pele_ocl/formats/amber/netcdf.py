"""Reader of NetCDF for AMBER restarts and trajectories: version 3, and version 4, which is HDF5.

Version 3 is Unidata's classic format. In HDF5 files, coordinates are a dataset `positions` or `coordinates` (m, n, 3),
as written by this program, MDTraj and NetCDF 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import gemmi
import numpy as np
from numpy.typing import NDArray

from ...atoms import Labels
from ...atoms.labels import labels_of_rows
from ...common.errors import FormatError, InputError
from ...common.textfiles import quoted
from ...contract import cells_of

if TYPE_CHECKING:
    import h5py

MAGICS = (b"CDF\x01", b"CDF\x02", b"CDF\x05")  # classic, 64-bit offsets, 64-bit data
_TYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_MOST_NAMES = 10_000


class Variable(NamedTuple):
    """A NetCDF variable.

    shape : lengths of the dimensions, None for the record dimension; begin : byte offset of the first record
    attributes : texts or numbers; only the first number of an array is kept
    """

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]
    begin: int
    attributes: dict[str, str | float]

    @property
    def is_record(self) -> bool:
        return self.shape[:1] == (None,)

    @property
    def record_size(self) -> int:
        """Size of a record in bytes, or of the whole variable if it has no record dimension."""
        n_values = 1
        for length in self.shape:
            n_values *= 1 if length is None else length
        return n_values * self.dtype.itemsize


class VectorPlace(NamedTuple):
    """Location of three numbers in a frame.

    start : byte offset from the beginning of the frame, or of the file if the numbers are shared by all frames
    """

    start: int
    dtype: np.dtype[Any]
    factor: float

    def read(self, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Read the numbers (m, 3) from bytes (m, length), one row per frame; NaN if a row is too short."""
        size = 3 * self.dtype.itemsize
        raw = rows[:, self.start : self.start + size]
        if raw.shape[1] < size:
            return np.full((len(rows), 3), np.nan)
        return np.ascontiguousarray(raw).view(self.dtype).astype(np.float64) * self.factor


class Frames(NamedTuple):
    """Layout of the frames in a file.

    n_frames : number of frames in the header; None for a file still being written, in which all complete frames count
    n_atoms, dtype : number of atoms and type of the coordinates (n_atoms, 3)
    begin, stride : byte offset of the first frame, and distance between frames; start : offset of the coordinates in a
        frame
    factor : conversion factor to A
    cell : locations of the lengths and angles of the unit cell; None if there is none
    """

    n_frames: int | None
    n_atoms: int
    dtype: np.dtype[Any]
    begin: int
    stride: int
    start: int
    factor: float
    cell: tuple[VectorPlace, VectorPlace] | None = None

    @property
    def has_one_cell(self) -> bool:
        """True if the file has a single cell instead of one per frame."""
        return self.cell is not None and self.stride == 3 * self.n_atoms * self.dtype.itemsize

    def cell_of(self, stream: BinaryIO, number: int) -> NDArray[np.float64] | None:
        """Read the unit cell (3, 3) A of a frame, from 0; None if there is none."""
        if self.cell is None:
            return None
        begin = 0 if self.has_one_cell else self.begin + number * self.stride
        numbers = []
        for place in self.cell:
            stream.seek(begin + place.start)
            row = np.frombuffer(stream.read(3 * place.dtype.itemsize), np.uint8)[np.newaxis]
            numbers.append(place._replace(start=0).read(row))
        found = cells_of(*numbers)[0]
        return found if np.isfinite(found).all() else None

    def counted(self, n_bytes: int) -> int:
        """Return the number of frames in a file of this size."""
        return max(0, n_bytes - self.begin) // self.stride if self.n_frames is None else self.n_frames


def read_frames(where: str, stream: BinaryIO) -> Frames:
    """Read the header of a file. where : path, for messages

    Raises FormatError if the header is damaged or there are no coordinates in A.
    """
    reader = _Reader(where, stream)
    n_records = reader.size()
    is_written = n_records == (2**64 if reader.version == 5 else 2**32) - 1
    dimensions = [(reader.name(), reader.size()) for _ in range(reader.count(_DIMENSIONS))]
    reader.attributes()
    variables = dict(reader.variable(dimensions) for _ in range(reader.count(_VARIABLES)))
    records = [v for v in variables.values() if v.is_record]
    # Records are not padded if there is only one record variable.
    stride = records[0].record_size if len(records) == 1 else sum(-(-v.record_size // 4) * 4 for v in records)
    found = variables.get("coordinates")
    if found is None:
        raise FormatError(f"{where}: contains no variable 'coordinates'; expected a restart or trajectory of AMBER")
    if len(found.shape) not in (2, 3) or found.shape[-1] != 3 or not found.shape[-2] or found.dtype.kind != "f":
        raise FormatError(f"{where}: the coordinates have shape {found.shape}; expected (atoms, 3)")
    factor, n_atoms = _factor(where, found), found.shape[-2]
    if found.is_record:
        begin = min(v.begin for v in records)
        n_frames = None if is_written else n_records
        cell = _cell(variables, begin, True)
        return Frames(n_frames, n_atoms, found.dtype, begin, stride, found.begin - begin, factor, cell)
    n_frames = 1 if len(found.shape) == 2 else found.shape[0]
    cell = _cell(variables, 0, False) if n_frames == 1 else None
    return Frames(n_frames, n_atoms, found.dtype, found.begin, 3 * n_atoms * found.dtype.itemsize, 0, factor, cell)


def _cell(variables: dict[str, Variable], begin: int, in_records: bool) -> tuple[VectorPlace, VectorPlace] | None:
    """Locate the unit cell, relative to the beginning of a record or the file; None if there is none of this kind."""
    found = [variables.get(name) for name in ("cell_lengths", "cell_angles")]
    places = []
    for variable in found:
        if variable is None or variable.dtype.kind != "f" or variable.shape[-1:] != (3,):
            return None
        if variable.is_record != in_records or len(variable.shape) != (2 if in_records else 1):
            return None
        factor = variable.attributes.get("scale_factor", 1.0)
        places.append(VectorPlace(variable.begin - begin, variable.dtype, factor if isinstance(factor, float) else 1.0))
    return places[0], places[1]


def _factor(where: str, found: Variable) -> float:
    """Return the conversion factor to A."""
    unit = found.attributes.get("units", "angstrom")
    if str(unit).strip("\0 ").lower() not in ("angstrom", "angstroms", "a"):
        raise FormatError(f"{where}: the coordinates are in {quoted(str(unit))}; expected angstrom")
    factor = found.attributes.get("scale_factor", 1.0)
    if not isinstance(factor, float) or not 0 < factor < np.inf:
        raise FormatError(f"{where}: the scale factor of the coordinates is {quoted(str(factor))}; the file is damaged")
    return factor


class _Reader:
    """Sequential reader of a NetCDF header."""

    def __init__(self, where: str, stream: BinaryIO) -> None:
        self.where, self.stream = where, stream
        self.end = stream.seek(0, 2)
        stream.seek(3)
        self.version, self.at = int.from_bytes(stream.read(1), "big"), 4
        if self.version not in (1, 2, 5):
            raise FormatError(f"{where}: unknown NetCDF version {self.version}; the file is damaged")

    def number(self, n_bytes: int) -> int:
        return int.from_bytes(self.take(n_bytes), "big")

    def size(self) -> int:
        return self.number(8 if self.version == 5 else 4)

    def take(self, n_bytes: int) -> bytes:
        """Read the next bytes and skip the padding to a multiple of 4."""
        if self.at + n_bytes > self.end:
            raise FormatError(f"{self.where}: the header ends too early, at byte {self.end:,}; is it complete?")
        padded = -(-n_bytes // 4) * 4
        self.at += padded
        return self.stream.read(padded)[:n_bytes]

    def name(self) -> str:
        return self.take(self.size()).decode("latin-1")

    def count(self, tag: int) -> int:
        """Read the tag and the length of a list."""
        found, length = self.number(4), self.size()
        if found not in (0, tag) or (found == 0 and length) or length > _MOST_NAMES:
            raise FormatError(f"{self.where}: byte {self.at:,}: no NetCDF header; the file is damaged")
        return length

    def dtype(self) -> np.dtype[Any]:
        code = self.number(4)
        if code not in _TYPES:
            raise FormatError(f"{self.where}: byte {self.at:,}: unknown number type {code}; the file is damaged")
        return np.dtype(_TYPES[code])

    def attributes(self) -> dict[str, str | float]:
        found = dict[str, str | float]()
        for _ in range(self.count(_ATTRIBUTES)):
            name, dtype, n = self.name(), self.dtype(), self.size()
            raw = self.take(n * dtype.itemsize)
            numbers = () if dtype.kind == "S" else np.frombuffer(raw, dtype, n).tolist()
            found[name] = float(numbers[0]) if numbers else raw.decode("latin-1")
        return found

    def variable(self, dimensions: list[tuple[str, int]]) -> tuple[str, Variable]:
        name = self.name()
        indices = [self.size() for _ in range(self.size())]
        stray = [index for index in indices if index >= len(dimensions)]
        if stray:
            raise FormatError(f"{self.where}: variable {quoted(name)} has an unknown dimension {stray[0]}")
        shape = tuple(dimensions[index][1] or None for index in indices)
        attributes, dtype = self.attributes(), self.dtype()
        self.size()  # size in bytes, redundant, and it overflows for large variables
        return name, Variable(shape, dtype, self.number(4 if self.version == 1 else 8), attributes)


HDF5 = b"\x89HDF\r\n\x1a\n"  # signature of HDF5 files
_NAMES = ("positions", "coordinates")
_ANGSTROM = {"angstrom": 1.0, "angstroms": 1.0, "a": 1.0, "nanometer": 10.0, "nanometers": 10.0, "nm": 10.0}


class Coordinates:
    """Coordinates in an open HDF5 file.

    n_frames, n_atoms : numbers of frames and atoms; a dataset (n, 3), as in restarts, is one frame
    dtype : type of the stored numbers
    offset : byte offset of the numbers in the file, if they are contiguous and in NumPy's layout; otherwise None
    factor : conversion factor to A, from the attributes `unit` or `units` and `scale_factor` of the dataset
    """

    def __init__(self, where: str, source: Path | BinaryIO) -> None:
        import h5py  # takes a tenth of a second to import

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
            raise FormatError(f"{self.where}: its positions are in {unit!r}; expected angstrom or nanometers")
        self._cell = [self._file.get(name) for name in ("cell_lengths", "cell_angles")]
        self.factor = _ANGSTROM[unit.lower()] * float(np.ravel(values.attrs.get("scale_factor", 1.0))[0])

    def read(self, start: int, stop: int, step: int = 1) -> NDArray[Any]:
        """Read the stored coordinates of some frames, (m, n_atoms, 3). Raises FormatError if they are damaged."""
        try:
            found = np.asarray(self._values[start:stop:step] if self._values.ndim == 3 else self._values[()])
        except OSError as error:
            raise FormatError(f"{self.where}: cannot be read ({error}); copy the file again") from None
        return found.reshape(-1, self.n_atoms, 3)

    def cells(self, start: int, stop: int, step: int = 1) -> NDArray[np.float64] | None:
        """Read the unit cells (m, 3, 3) A of some frames, NaN for frames without one; None if the file has no cells."""
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
        # MDTraj's cells are in nm; cells without a unit have that of the positions
        factor = self.factor if text is None else _ANGSTROM.get(str(text).lower(), np.nan)
        return cells_of(numbers[0] * factor, numbers[1])

    def labels(self) -> Labels | None:
        """Read the labels, as written by this program or MDTraj; None if the file has none.

        Raises FormatError if they are damaged or their number differs from the number of atoms.
        """
        columns = [f.name for f in fields(Labels)]
        try:
            if all(name in self._file for name in columns):
                found = Labels(**{name: _column(self._file[name]) for name in columns})
            elif "topology" in self._file:
                found = _labels_of_mdtraj(json.loads(np.ravel(self._file["topology"][()])[0]))
            else:
                return None
        except (InputError, OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            raise FormatError(f"{self.where}: the names of its atoms are damaged; copy the file again") from None
        if len(found) != self.n_atoms:
            raise FormatError(f"{self.where}: has names of {len(found):,} atoms and positions of {self.n_atoms:,}")
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _column(values: h5py.Dataset) -> NDArray[Any]:
    """Read a column of labels, decoding texts."""
    found = np.asarray(values[()])
    if found.dtype.kind in "iu":
        return found
    return np.array([of.decode() if isinstance(of, bytes) else of for of in found.tolist()], np.str_)


def _labels_of_mdtraj(topology: dict[str, Any]) -> Labels:
    """Make Labels from MDTraj's JSON topology: chains with residues with atoms, each atom with its index."""
    found = dict[int, tuple[str, str, str, int, str, str, int]]()
    residues = [(chain, residue) for chain in topology["chains"] for residue in chain["residues"]]
    for place, (chain, residue) in enumerate(residues):
        for atom in residue["atoms"]:
            symbol = str(atom.get("element") or "X")
            element = symbol if gemmi.Element(symbol).atomic_number else "X"
            letter = str(chain.get("chain_id") or "")
            row = (str(atom["name"]), element, str(residue["name"]), int(residue["resSeq"]), "", letter, place)
            found[int(atom["index"])] = row
    return labels_of_rows(found[k] for k in range(len(found)))


def _offset(values: h5py.Dataset) -> int | None:
    """Return the byte offset of a contiguous dataset in NumPy's layout; otherwise None."""
    import h5py

    is_known = values.id.get_type() == h5py.h5t.py_create(values.dtype)
    return values.id.get_offset() if is_known and values.size else None  # None for chunked datasets


@contextmanager
def opened_coordinates(where: str, source: Path | BinaryIO) -> Iterator[Coordinates]:
    """Context manager that opens the coordinates of an HDF5 file. where : path, for messages"""
    found = Coordinates(where, source)
    try:
        yield found
    finally:
        found.close()
