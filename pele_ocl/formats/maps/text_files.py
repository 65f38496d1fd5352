"""Maps as text: numbers in and out, in pieces, steps along axes, and lines of title, unit and origin."""

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

_LINES = 65_536  # read at a time
_VALUES = 200_000  # written at a time


def texts(rows: NDArray[Any], per_line: int, form: str, indent: str = "") -> Iterator[str]:
    """Rows of numbers (n, m) as text, in pieces; a row begins on a new line and has `per_line` numbers per line."""
    n_rows, length = rows.shape
    template = "".join(
        indent + " ".join([form] * min(per_line, length - start)) + "\n" for start in range(0, length, per_line)
    )
    step = max(1, _VALUES // max(1, length))
    for start in range(0, n_rows, step):
        piece = rows[start : start + step]
        yield template * len(piece) % tuple(piece.ravel().tolist())


def read_numbers(text: Iterator[str], n: int, path: Path, line: int) -> tuple[Floats, list[str]]:
    """Read the next n numbers, (n,), however many a line has, and the words after them that were read as well.

    line : number of the next line, for messages

    Raises FormatError for a word that is not a number, and for a text that ends too early.
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
            if "_" in joined or not joined.isascii():  # `1_0` and digits of other scripts pass for numbers
                raise ValueError
            blocks.append(np.array(words[:left], np.float64))
        except ValueError:
            blocks.append(_carefully(block, left, n, path, line))
        rest = words[left:]
        left -= len(blocks[-1])
        line += len(block)
    return np.concatenate(blocks), rest if n else []


def orthogonal_spacing(path: Path, steps: Floats) -> Floats:
    """Steps along x, y and z, (3,), of three step vectors; raises FormatError unless these run along the axes."""
    spacing = np.diag(steps)
    if np.isfinite(steps).all() and (np.abs(steps - np.diag(spacing)) > 1e-6 * np.abs(steps).max()).any():
        raise FormatError(f"{path}: the axes do not run along x, y and z; only orthogonal grids can be read")
    return spacing


def _carefully(block: list[str], left: int, n: int, path: Path, line: int) -> Floats:
    """Read the first `left` words of a block of lines as numbers, word by word."""
    values: list[float] = []
    for number_of_line, words in enumerate(map(str.split, block), line):
        for word in words[: left - len(values)]:
            value = number(word)
            if value is None:
                which = n - left + len(values) + 1
                raise FormatError(
                    f"{path}:{number_of_line}: {quoted(word)} stands where value {which:,} of {n:,} should"
                )
            values.append(value)
    return np.array(values)


_UNIT = re.compile(r"unit: *(?P<unit>.*?)(?: at (?P<temperature>\d+(?:\.\d+)?) K)?")
_APBS_UNIT = re.compile(r"POTENTIAL \((?P<unit>kT/e)\)")


def unit_line(map_: Map) -> str:
    """Write the line `unit: kT/e at 298.15 K`."""
    return f"unit: {on_one_line(map_.full_unit)}"


def title_line(map_: Map) -> str:
    """Write the title as one line that cannot be taken for the unit's."""
    title = on_one_line(map_.title)
    return f"({title})" if title.startswith("unit:") else title


def head_lines(map_: Map, attributes: Mapping[str, object]) -> list[str]:
    """Title, if there is one, unit, and the attributes as `name: value`."""
    title = title_line(map_)
    return [
        *([title] if title else []),
        unit_line(map_),
        *(f"{name}: {on_one_line(text)}" for name, text in flat_texts(attributes).items()),
    ]


def understood(lines: Iterable[str]) -> dict[str, Any]:
    """Title, unit and temperature, as far as lines of text tell them: the fields of a Map.

    The title is what stands before the unit, or the first line where no unit is said.
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
    """Write a text, which may come from any file, with single blanks and escaped control characters."""
    return printable(" ".join(text.split()))
