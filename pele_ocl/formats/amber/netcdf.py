"""NetCDF files of version 3, as far as AMBER's restarts and trajectories need them; the classic format of Unidata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...textfiles import quoted

MAGICS = (b"CDF\x01", b"CDF\x02", b"CDF\x05")  # classic, with offsets of 64 bits, with sizes of 64 bits, too
_TYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_MOST_NAMES = 10_000


class Variable(NamedTuple):
    """A variable. shape : None for the number of records; begin : of its first record, in bytes; attributes : texts"""

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]
    begin: int
    attributes: dict[str, str]

    @property
    def is_record(self) -> bool:
        return self.shape[:1] == (None,)

    @property
    def record_size(self) -> int:
        """Bytes of one record, or of the whole where it has no records."""
        n_values = 1
        for length in self.shape:
            n_values *= 1 if length is None else length
        return n_values * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class NetCdf:
    """A file's variables. n_records : frames; stride : bytes from one record to the next"""

    where: str
    data: bytes
    variables: Mapping[str, Variable]
    n_records: int
    stride: int

    def values(self, name: str, record: int = 0) -> NDArray[np.float64]:
        """The values of a variable, of one record where it has records; raises FormatError where they end too early."""
        variable = self.variables[name]
        begin = variable.begin + (record * self.stride if variable.is_record else 0)
        shape = [length for length in variable.shape if length is not None]
        if begin + variable.record_size > len(self.data):
            raise FormatError(
                f"{self.where}: variable {name} ends beyond the {len(self.data):,} bytes of the file; is it complete?"
            )
        count = variable.record_size // variable.dtype.itemsize
        values = np.frombuffer(self.data, variable.dtype, count, begin)
        with np.errstate(invalid="ignore"):  # of damaged files, whose NaN may be of the kind that signals
            return values.reshape(shape).astype(np.float64)


def read_netcdf(where: str, data: bytes) -> NetCdf:
    """The header of a file. where : path, for messages. Raises FormatError for a damaged one."""
    reader = _Reader(where, data)
    wide = reader.version == 5
    n_records = reader.size()
    dimensions = [(reader.name(), reader.size()) for _ in range(reader.count(_DIMENSIONS))]
    reader.attributes()
    variables = dict[str, Variable]()
    for _ in range(reader.count(_VARIABLES)):
        name, variable = reader.variable(dimensions)
        variables[name] = variable
    records = [v for v in variables.values() if v.is_record]
    # A file with one variable of records has them without padding.
    stride = records[0].record_size if len(records) == 1 else sum(-(-v.record_size // 4) * 4 for v in records)
    if n_records == (2**64 if wide else 2**32) - 1:  # it was being written; all whole records count
        begin = min((v.begin for v in records), default=0)
        n_records = (len(data) - begin) // stride if stride else 0
    return NetCdf(where, data, variables, n_records, stride)


class _Reader:
    """The items of a header, one after the other."""

    def __init__(self, where: str, data: bytes) -> None:
        self.where, self.data, self.at, self.version = where, data, 4, data[3]

    def number(self, n_bytes: int) -> int:
        return int.from_bytes(self.take(n_bytes), "big")

    def size(self) -> int:
        return self.number(8 if self.version == 5 else 4)

    def take(self, n_bytes: int) -> bytes:
        """The next bytes, and the padding to a multiple of 4 is passed over."""
        if self.at + n_bytes > len(self.data):
            raise FormatError(f"{self.where}: the header ends too early, at byte {len(self.data):,}; is it complete?")
        taken = self.data[self.at : self.at + n_bytes]
        self.at += -(-n_bytes // 4) * 4
        return taken

    def name(self) -> str:
        return self.take(self.size()).decode("latin-1")

    def count(self, tag: int) -> int:
        """The length of the list that begins here."""
        found, length = self.number(4), self.size()
        if found not in (0, tag) or (found == 0 and length) or length > _MOST_NAMES:
            raise FormatError(f"{self.where}: byte {self.at:,}: no NetCDF header; the file is damaged")
        return length

    def dtype(self) -> np.dtype[Any]:
        code = self.number(4)
        if code not in _TYPES:
            raise FormatError(
                f"{self.where}: byte {self.at:,}: numbers of the unknown kind {code}; the file is damaged"
            )
        return np.dtype(_TYPES[code])

    def attributes(self) -> dict[str, str]:
        found = dict[str, str]()
        for _ in range(self.count(_ATTRIBUTES)):
            name, dtype, n = self.name(), self.dtype(), self.size()
            raw = self.take(n * dtype.itemsize)
            found[name] = raw.decode("latin-1") if dtype.kind == "S" else str(np.frombuffer(raw, dtype, n).tolist())
        return found

    def variable(self, dimensions: list[tuple[str, int]]) -> tuple[str, Variable]:
        name = self.name()
        indices = [self.size() for _ in range(self.size())]
        stray = [index for index in indices if index >= len(dimensions)]
        if stray:
            raise FormatError(f"{self.where}: variable {quoted(name)}: there is no dimension {stray[0]}")
        shape = tuple(dimensions[index][1] or None for index in indices)
        attributes, dtype = self.attributes(), self.dtype()
        self.size()  # its bytes, which overflow for large variables and follow from the shape
        return name, Variable(shape, dtype, self.number(4 if self.version == 1 else 8), attributes)
