"""OpenDX files as exchanged by VMD, APBS, PyMOL and ChimeraX: text, Angstrom, z fastest.

`origin` is the position of the first value. Comments are only at the top, because VMD does not support others.

GridDataFormats 1.2.0 is not used because it hangs on truncated files, accepts NaN and skew steps, and writes three
times more slowly (1.7 million values: 5.6 s, here 1.7 s); it reads as fast. The tests compare with it.
"""

from __future__ import annotations

import gzip
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...common.errors import FormatError
from ...common.inputfile import InputFile
from ...common.textfiles import lines, number, quoted
from ...grid import Grid, Map
from ..registry import Details, MapFormat
from .text_files import head_lines, orthogonal_spacing, read_numbers, texts, title_line, understood

_COUNTS = re.compile(r"class\s+gridpositions\s+counts\s+(\d{1,15})\s+(\d{1,15})\s+(\d{1,15})\s*$")
_ARRAY = re.compile(r"class\s+array\b.*\bitems\s+(?:\[\s*)?(\d{1,15})(?:\s*\])?(\s.*)$")
_SHAPED = re.compile(r'\brank\s+"?[1-9]')
_PER_LINE = 3
_COLUMNS = 78  # width of comments, because old readers support lines of 80 characters
_COMPRESSION = 4  # gzip level; higher levels gain little for digits


def write_dx(path: Path, map_: Map, details: Details) -> None:
    """Write a map as text."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(_text(map_, details))


def write_dx_gz(path: Path, map_: Map, details: Details) -> None:
    """Write a map as gzip data with reproducible bytes."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as file:
        file.writelines(piece.encode(errors="backslashreplace") for piece in _text(map_, details))


def read_dx(file: InputFile) -> Map:
    """Read a map in text form, plain or gzip.

    Raises FormatError for binary data, non-orthogonal axes, several values per point, and damaged files.
    """
    path = file.path
    text = lines(file, "DX")
    comments: list[str] = []
    shape: tuple[int, ...] = ()
    vectors: dict[str, list[list[float]]] = {"origin": [], "delta": []}
    for at, line in enumerate(text, 1):
        words = line.split()
        if line.startswith("#"):
            comments.append(line[1:])
        elif words[:1] in (["origin"], ["delta"]):
            vectors[words[0]].append(_three(words, path, at))
        elif counts := _COUNTS.search(line):
            shape = tuple(map(int, counts.groups()))
        elif array := _ARRAY.search(line):
            grid = _grid(path, at, shape, vectors)
            _check_array(path, at, line, int(array[1]), array[2], grid)
            values, rest = read_numbers(text, len(grid), path, at + 1)
            _check_end(path, rest, text, len(grid))
            ordered = np.ascontiguousarray(values.reshape(grid.shape).transpose(2, 1, 0))
            return Map.owning(grid, ordered, **understood(comments))
    raise FormatError(f"{path}: has no line 'object ... class array ... data follows'; is it OpenDX?")


def _text(map_: Map, details: Details) -> Iterator[str]:
    nx, ny, nz = map_.grid.shape
    counts = f"counts {nx} {ny} {nz}\n"
    for line in head_lines(map_, details.attributes):
        yield "".join(f"# {line}\n" for line in textwrap.wrap(line, _COLUMNS) or [""])
    yield f"object 1 class gridpositions {counts}"
    yield _row("origin", map_.grid.origin.tolist())
    for axis in np.diag(map_.grid.spacing):
        yield _row("delta", axis.tolist())
    yield f"object 2 class gridconnections {counts}"
    yield f"object 3 class array type double rank 0 items {len(map_.grid)} data follows\n"
    # Write several planes of constant x at a time, such that they fill complete lines.
    step = _PER_LINE * max(1, 65_536 // (_PER_LINE * ny * nz))
    for start in range(0, nx, step):
        details.tell(start / nx)
        values = map_.values[:, :, start : start + step].transpose(2, 1, 0).ravel()
        whole = len(values) - len(values) % _PER_LINE
        yield from texts(values[:whole].reshape(-1, _PER_LINE), _PER_LINE, "%.7e")
        yield from texts(values[whole:].reshape(1, -1), _PER_LINE, "%.7e")
    name = title_line(map_).replace('"', "'")[:60] or "map"
    yield f'attribute "dep" string "positions"\nobject "{name}" class field\n'
    yield 'component "positions" value 1\ncomponent "connections" value 2\ncomponent "data" value 3\n'


def _row(name: str, numbers: list[float]) -> str:
    return f"{name} {' '.join(f'{value:.12e}' for value in numbers)}\n"


def _three(words: list[str], path: Path, at: int) -> list[float]:
    numbers = [number(word) for word in words[1:]]
    if len(numbers) != 3 or None in numbers:
        raise FormatError(f"{path}:{at}: {words[0]} needs three numbers, not {quoted(' '.join(words[1:]))}")
    return [value for value in numbers if value is not None]


def _grid(path: Path, at: int, shape: tuple[int, ...], vectors: dict[str, list[list[float]]]) -> Grid:
    if not shape or len(vectors["origin"]) != 1 or len(vectors["delta"]) != 3:
        raise FormatError(f"{path}:{at}: values before a whole grid: expected counts, one origin and three deltas")
    return Grid(vectors["origin"][0], orthogonal_spacing(path, np.array(vectors["delta"])), shape)


def _check_array(path: Path, at: int, line: str, items: int, form: str, grid: Grid) -> None:
    if "binary" in form or form.split() != ["data", "follows"]:
        raise FormatError(f"{path}:{at}: contains values that are not text; write the map as text")
    if _SHAPED.search(line):
        raise FormatError(f"{path}:{at}: contains several numbers per point; only maps of one number can be read")
    if items != len(grid):
        shape = " x ".join(map(str, grid.shape))
        raise FormatError(f"{path}:{at}: announces {items:,} values, but {shape} points are {len(grid):,}")


def _check_end(path: Path, rest: list[str], text: Iterator[str], n: int) -> None:
    following = rest or next((words for words in map(str.split, text) if words), [])
    if following and number(following[0]) is not None:
        raise FormatError(f"{path}: contains more than the {n:,} values it announces")
    for _ in text:  # read to the end, where truncated gzip data is detected
        pass


FORMAT = MapFormat(read_dx, write_dx)
GZIP_FORMAT = MapFormat(read_dx, write_dx_gz)
