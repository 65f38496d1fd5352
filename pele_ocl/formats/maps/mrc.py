"""MRC2014 and CCP4 maps: a header of 256 words, followed by the values in binary, x fastest.

The position of the first value is in ORIGIN, words 50 to 52, which can represent any origin; NSTART, words 5 to 7, is
0. Words are numbered from 1, as in the standard: https://www.ccpem.ac.uk/mrc_format/mrc2014.php

gemmi 0.7.5 is not used because it ignores ORIGIN and rotates the values in the cell by NSTART. mrcfile 1.5.4 would be
an additional dependency for a header of 1024 bytes. The tests compare with both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...common.errors import FormatError, InputError
from ...common.inputfile import InputFile
from ...grid import Grid, Map
from ..registry import Details, MapFormat
from .text_files import head_lines, understood

_HEADER_BYTES = 1024
_MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
_LITTLE_ENDIAN_STAMP = 0x4144
_VERSION = 20140
_LABELS, _LABEL_BYTES = 10, 80
_LABEL_START = _HEADER_BYTES - _LABELS * _LABEL_BYTES
_PLANES_BYTES = 2**26  # bytes written at a time


def write_mrc(path: Path, map_: Map, details: Details) -> None:
    """Write a map in mode 2, float32.

    Raises InputError for values beyond the range of float32.
    """
    largest = max(abs(float(map_.values.min())), abs(float(map_.values.max())))
    if largest > float(np.finfo(np.float32).max):
        raise InputError(f"a value of {largest:g} is too large for the float32 of MRC files; use another format")
    with open(path, "wb") as file:
        file.write(_header(map_, details))
        step = max(1, _PLANES_BYTES // (map_.values[0].size * 4))
        for start in range(0, len(map_.values), step):
            details.tell(start / len(map_.values))
            file.write(map_.values[start : start + step].astype("<f4", order="C").tobytes())


@np.errstate(invalid="ignore")  # NaN is rejected later
def read_mrc(file: InputFile) -> Map:
    """Read a map in either byte order and with any order of axes, in mode 0, 1, 2, 6 or 12.

    NSTART is used if ORIGIN is 0.

    Raises FormatError for other modes, non-orthogonal cells, and damaged files.
    """
    path, header = file.path, file.data[:_HEADER_BYTES]
    if len(header) < _HEADER_BYTES or header[208:212] != b"MAP ":
        raise FormatError(f"{path}: not an MRC or CCP4 map: it has no header of 1024 bytes with the word MAP")
    # The axes, a permutation of 1, 2 and 3, indicate the byte order more reliably than the machine stamp.
    order = ">" if sorted(np.frombuffer(header, ">i4")[16:19].tolist()) == [1, 2, 3] else "<"
    words = np.frombuffer(header, f"{order}i4")
    reals = words.view(f"{order}f4").astype(np.float64)
    axes = words[16:19].tolist()
    if sorted(axes) != [1, 2, 3]:
        raise FormatError(f"{path}: MAPC, MAPR and MAPS are {axes}; expected 1, 2 and 3 in some order")
    mode = int(words[3])
    if mode not in _MODES:
        raise FormatError(f"{path}: contains numbers of mode {mode}; modes {', '.join(map(str, _MODES))} can be read")
    values = _values(file, words, np.dtype(order + _MODES[mode]))
    # The axes of the file are sections, rows, columns; those of the map are z, y, x.
    values = values.transpose([2 - axes.index(axis) for axis in (3, 2, 1)])
    grid = _grid(path, words, reals, values.shape[::-1], [axes.index(axis) for axis in (1, 2, 3)])
    kind = np.float64 if values.dtype.itemsize > 4 else np.float32
    labels = header[_LABEL_START : _LABEL_START + _LABEL_BYTES * int(np.clip(words[55], 0, _LABELS))]
    texts = [
        labels[start : start + _LABEL_BYTES].decode("ascii", "replace").strip("\0 ")
        for start in range(0, len(labels), _LABEL_BYTES)
    ]
    return Map.owning(grid, np.array(values, kind, order="C"), **understood(texts))


def _mean_and_deviation(values: NDArray[np.floating]) -> tuple[float, float]:
    """Compute the mean and standard deviation plane by plane, without a float64 copy of the map."""
    mean = sum(float(plane.sum(dtype=np.float64)) for plane in values) / values.size
    squares = sum(float(np.square(plane - np.float64(mean)).sum()) for plane in values)
    return mean, (squares / values.size) ** 0.5


def _header(map_: Map, details: Details) -> bytes:
    grid = map_.grid
    words = np.zeros(_HEADER_BYTES // 4, "<i4")
    reals = words.view("<f4")
    words[0:3] = words[7:10] = grid.shape
    words[3] = 2  # mode: float32
    reals[10:13] = grid.spacing * grid.shape
    reals[13:16] = 90
    words[16:19] = 1, 2, 3  # columns along x, rows along y, sections along z
    mean, deviation = _mean_and_deviation(map_.values)
    reals[19:22] = map_.values.min(), map_.values.max(), mean
    words[22] = 1  # space group: P1, a volume
    words[27] = _VERSION
    reals[49:52] = grid.origin
    words[52] = int.from_bytes(b"MAP ", "little")
    words[53] = _LITTLE_ENDIAN_STAMP
    reals[54] = deviation
    labels = [line.encode("ascii", "replace")[:_LABEL_BYTES] for line in head_lines(map_, details.attributes)]
    words[55] = len(labels[:_LABELS])
    text = b"".join(label.ljust(_LABEL_BYTES) for label in labels[:_LABELS])
    return words.tobytes()[:_LABEL_START] + text.ljust(_LABELS * _LABEL_BYTES)


def _values(file: InputFile, words: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values in the order of the file: (sections, rows, columns)."""
    shape = tuple(int(n) for n in words[2::-1])
    extended = int(words[23])
    if min(shape) < 1 or extended < 0:
        raise FormatError(f"{file}: the header is damaged: {shape[::-1]} values, {extended} bytes before them")
    n = shape[0] * shape[1] * shape[2]
    there = (len(file.data) - _HEADER_BYTES - extended) // dtype.itemsize
    if there < n:
        raise FormatError(f"{file}: ends after {max(0, there):,} of {n:,} values; fetch or copy the file again")
    return np.frombuffer(file.data, dtype, n, _HEADER_BYTES + extended).reshape(shape)


def _grid(path: Path, words: NDArray[Any], reals: NDArray[Any], shape: tuple[int, ...], order: list[int]) -> Grid:
    """Create the grid. order : which of columns, rows and sections is along x, y and z"""
    if not np.allclose(reals[13:16], 90, atol=1e-3):
        raise FormatError(f"{path}: the cell's angles are not 90 degrees; only orthogonal grids can be read")
    if (words[7:10] < 1).any():
        raise FormatError(f"{path}: the header is damaged: MX, MY and MZ are {words[7:10].tolist()}")
    spacing = reals[10:13] / words[7:10]
    origin = reals[49:52]
    if not origin.any():
        origin = words[4:7][order] * spacing
    return Grid(origin, spacing, shape)


FORMAT = MapFormat(read_mrc, write_mrc)
