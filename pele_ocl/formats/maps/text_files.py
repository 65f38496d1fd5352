"""Common functions for text maps: numbers, steps along axes, and lines with the title and unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.errors import FormatError, printable
from ...common.textfiles import number, quoted
from ...grid import Map
from ..tables import flat_texts

_LINES = 65_536  # lines read at a time
_VALUES = 200_000  # values written at a time


def texts(rows: NDArray[Any], per_line: int, form: str, indent: str = "") -> Iterator[str]:
    """Yield rows of numbers (n, m) as text. Each row starts a new line, with `per_line` numbers per line."""
    n_rows, length = rows.shape
    template = "".join(
        indent + " ".join([form] * min(per_line, length - start)) + "\n" for start in range(0, length, per_line)
    )
    step = max(1, _VALUES // max(1, length))
    for start in range(0, n_rows, step):
        piece = rows[start : start + step]
        yield template * len(piece) % tuple(piece.ravel().tolist())


def read_numbers(text: Iterator[str], n: int, path: Path, line: int) -> tuple[Floats, list[str]]:
    """Read the next n numbers, (n,), on any number of lines. Also returns the words after them in the lines read.

    line : number of the next line, for messages

    Raises FormatError for words that are not numbers, and if the text ends too early.
    """
    blocks = [np.empty(0)]
    left = n
    while left > 0:
        block = list(islice(text, _LINES))
        if not block:
            raise FormatError(f"{path}: ends after {n - left:,} of {n:,} values; fetch or copy the file again")
        joined = "".join(block)
        words = joined.split()
        try:
            if "_" in joined or not joined.isascii():  # NumPy accepts `1_0` and digits of other scripts
                raise ValueError
            blocks.append(np.array(words[:left], np.float64))
        except ValueError:
            blocks.append(_carefully(block, left, n, path, line))
        rest = words[left:]
        left -= len(blocks[-1])
        line += len(block)
    return np.concatenate(blocks), rest if n else []


def orthogonal_spacing(path: Path, steps: Floats) -> Floats:
    """Return the spacing (3,) from three step vectors. Raises FormatError unless they are parallel to the axes."""
    spacing = np.diag(steps)
    if np.isfinite(steps).all() and (np.abs(steps - np.diag(spacing)) > 1e-6 * np.abs(steps).max()).any():
        raise FormatError(f"{path}: the axes do not run along x, y and z; only orthogonal grids can be read")
    return spacing


def _carefully(block: list[str], left: int, n: int, path: Path, line: int) -> Floats:
    """Read the first `left` words of a block of lines as numbers, one by one, to locate errors."""
    values: list[float] = []
    for number_of_line, words in enumerate(map(str.split, block), line):
        for word in words[: left - len(values)]:
            value = number(word)
            if value is None:
                which = n - left + len(values) + 1
                raise FormatError(f"{path}:{number_of_line}: expected value {which:,} of {n:,}, not {quoted(word)}")
            values.append(value)
    return np.array(values)


_UNIT = re.compile(r"unit: *(?P<unit>.*?)(?: at (?P<temperature>\d+(?:\.\d+)?) K)?")
_APBS_UNIT = re.compile(r"POTENTIAL \((?P<unit>kT/e)\)")


def unit_line(map_: Map) -> str:
    """Return a line such as `unit: kT/e at 298.15 K`."""
    return f"unit: {on_one_line(map_.full_unit)}"


def title_line(map_: Map) -> str:
    """Return the title as one line that cannot be confused with the unit line."""
    title = on_one_line(map_.title)
    return f"({title})" if title.startswith("unit:") else title


def head_lines(map_: Map, attributes: Mapping[str, object]) -> list[str]:
    """Return lines with the title, if any, the unit, and the attributes as `name: value`."""
    title = title_line(map_)
    return [
        *([title] if title else []),
        unit_line(map_),
        *(f"{name}: {on_one_line(text)}" for name, text in flat_texts(attributes).items()),
    ]


def understood(lines: Iterable[str]) -> dict[str, Any]:
    """Parse title, unit and temperature from comment lines, as fields of a Map.

    The title consists of the lines before the unit, or is the first line if there is no unit.
    """
    texts = [text for text in map(on_one_line, lines) if text]
    for k, text in enumerate(texts):
        unit = _UNIT.fullmatch(text) or _APBS_UNIT.fullmatch(text)
        if unit is not None:
            kelvin = unit.groupdict().get("temperature")
            return {
                "title": " ".join(texts[:k]),
                "unit": unit["unit"],
                "temperature": None if kelvin is None else float(kelvin),
            }
    return {"title": texts[0]} if texts else {}


def on_one_line(text: str) -> str:
    """Convert arbitrary text to one line, with single blanks and escaped control characters."""
    return printable(" ".join(text.split()))
