"""Reader of files with points: NumPy arrays, and text with one point per line."""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path

import numpy as np

from ..atoms import Floats
from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, number, quoted
from .hdf5 import npy_array

_TEXTS = (".txt", ".dat", ".csv")
POINT_SUFFIXES = (".npy", *_TEXTS)


def read_points(path: str | PathLike[str]) -> Floats:
    """Read the positions (n, 3) A of points.

    path : .npy file with an array (n, 3), or text file (.txt, .dat, .csv) with x, y and z in each line, separated by
        blanks or commas. If the first line is a header, the columns x, y and z are found by name, such as
        `position_x [A]`; otherwise the first three columns are used. `#` begins a comment

    Raises FormatError, with the file and line, if the file cannot be read.
    """
    if Path(path).suffix.lower() not in POINT_SUFFIXES:
        raise FormatError(f"{path}: unknown suffix {Path(path).suffix!r}; points end in {', '.join(POINT_SUFFIXES)}")
    file = read_file(path)
    positions = _read_npy(file) if file.suffix == ".npy" else _read_text(file)
    if not np.isfinite(positions).all():
        first = int(np.argmin(np.isfinite(positions).all(axis=1)))
        raise FormatError(f"{file}: the coordinates of point {first + 1} are not finite")
    return positions


def _read_npy(file: InputFile) -> Floats:
    array = npy_array(io.BytesIO(file.data), len(file.data), file)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iuf":
        raise FormatError(f"{file}: expected an array of numbers of shape (n, 3)")
    with np.errstate(invalid="ignore"):  # NaN is rejected later
        return array.astype(np.float64)


def _read_text(path: InputFile) -> Floats:
    columns: tuple[int, ...] = (0, 1, 2)
    points: list[list[float]] = []
    named = False
    for at, line in enumerate(lines(path, "point"), 1):
        data = line.partition("#")[0]
        words = [word.strip() for word in data.split(",")] if "," in data else data.split()
        if not any(words):
            continue
        if not points and not named and number(words[0]) is None:
            columns, named = _columns(path, at, words), True
            continue
        chosen = [words[k] if k < len(words) else "" for k in columns]
        values = [number(word) for word in chosen]
        if None in values:
            raise FormatError(f"{path}:{at}: expected x, y and z, not {quoted(data.strip())}")
        points.append([value for value in values if value is not None])
    return np.array(points, np.float64).reshape(-1, 3)


def _columns(path: InputFile, at: int, names: list[str]) -> tuple[int, ...]:
    """Find the columns x, y and z in the header."""
    short = [name.partition("[")[0].strip().lower().rpartition("_")[2] for name in names]
    if any(short.count(axis) != 1 for axis in "xyz"):
        raise FormatError(f"{path}:{at}: names no columns x, y and z: {', '.join(names)[:60]}")
    return tuple(short.index(axis) for axis in "xyz")
