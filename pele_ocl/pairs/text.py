"""Text with a pair a line: two indices, and what else the columns say of the pair."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.errors import FormatError
from ..common.inputfile import InputFile
from ..common.textfiles import lines, number, quoted

Columns = dict[str, NDArray[Any]]

_BLOCK = 65_536
# The meaning of columns that no line names, by their number.
_UNNAMED = {
    2: ("first", "second"),
    3: ("first", "second", "one_four"),
    4: ("first", "second", "sigma2", "charge_products"),
    5: ("first", "second", "sigma2", "charge_products", "one_four"),
}
_NAMES = frozenset(_UNNAMED[5])
_HEAD = re.compile(
    r"# (\d{1,18}) pairs of (\d{1,18}) atoms;(?:.*; names ([0-9a-f]{16})$)?", re.ASCII | re.MULTILINE
)  # how write_pairs begins a text

_PARSERS: dict[str, tuple[Callable[[str], Any], Any, str]] = {
    "first": (int, np.int64, "the index of an atom"),
    "second": (int, np.int64, "the index of an atom"),
    "one_four": ({"0": False, "1": True}.__getitem__, np.bool_, "0 or 1"),
    "sigma2": (float, np.float64, "a finite number"),
    "charge_products": (float, np.float64, "a finite number"),
}


def read_columns(path: InputFile) -> tuple[Columns, NDArray[np.int64]]:
    """Read the columns of a text by name, and the line of each pair, from 1; n_pairs and n_atoms if its head says them.

    Raises FormatError, naming file and line, for rows of other lengths and words that are no numbers.
    """
    names: Sequence[str] = ()
    stored: Columns = {}
    blocks: list[list[NDArray[Any]]] = []
    numbers: list[NDArray[np.int64]] = []
    text = lines(path, "pair list")
    start = 1
    while block := list(islice(text, _BLOCK)):
        if start == 1 and (head := _HEAD.match(block[0])):
            stored = {"n_pairs": np.array(int(head[1])), "n_atoms": np.array(int(head[2]))}
            stored |= {} if head[3] is None else {"atoms_sha256": np.array(head[3])}
        rows, where = _rows(block, start)
        start += len(block)
        for words in rows[:1]:
            names = names or _column_names(words) or _UNNAMED.get(len(words), _UNNAMED[2])
            if _column_names(words):
                rows, where = rows[1:], where[1:]
        if rows:
            strict = any("_" in line or not line.isascii() for line in block)  # int and float take `1_0`
            blocks.append(_parsed(path, names, rows, where, strict))
            numbers.append(where)
    names = names or _UNNAMED[2]
    if not blocks:
        blocks, numbers = [[np.empty(0, _PARSERS[name][1]) for name in names]], [np.empty(0, np.int64)]
    columns = {name: np.concatenate([block[k] for block in blocks]) for k, name in enumerate(names)}
    return columns | stored, np.concatenate(numbers)


def _rows(block: list[str], start: int) -> tuple[list[list[str]], NDArray[np.int64]]:
    """Return the words of each line that holds some, and its number; a comment counts if it names the columns."""
    text = "".join(block)
    if "," in text:
        block = [line.replace(",", " ") for line in block]
    if "#" in text:
        block = [line if "#" not in line else _uncommented(line) for line in block]
    rows = [line.split() for line in block]
    held = [k for k, words in enumerate(rows) if words]
    if len(held) < len(rows):
        rows = [rows[k] for k in held]
    return rows, np.array(held, np.int64) + start


def _uncommented(line: str) -> str:
    data, _, comment = line.partition("#")
    return comment if not data.strip() and _column_names(comment.split()) else data


def _column_names(words: list[str]) -> list[str] | None:
    """Return the words, if they are names of columns."""
    return words if words and words[0] in _NAMES and set(words) <= _NAMES else None


def _parsed(
    path: InputFile, names: Sequence[str], rows: list[list[str]], where: NDArray[np.int64], strict: bool
) -> list[NDArray[Any]]:
    """One array a name; strict : whether to look at each word before it is parsed."""
    try:
        if strict and any(number(word) is None for words in rows for word in words):
            raise ValueError
        if set(map(len, rows)) != {len(names)}:
            raise ValueError
        return [_array(name, column) for name, column in zip(names, zip(*rows, strict=True), strict=True)]
    except (ValueError, KeyError, OverflowError):
        raise FormatError(_complaint(path, names, rows, where)) from None


def _array(name: str, words: Sequence[str]) -> NDArray[Any]:
    """Parse the numbers that words spell; raise ValueError, KeyError or OverflowError if one spells none."""
    parse, dtype, _ = _PARSERS[name]
    values = np.array(list(map(parse, words)), dtype)
    if not np.isfinite(values).all():
        raise ValueError
    return values


def _complaint(path: InputFile, names: Sequence[str], rows: list[list[str]], where: NDArray[np.int64]) -> str:
    """A sentence about the first row that is wrong."""
    for at, words in zip(where.tolist(), rows, strict=True):
        if len(words) != len(names):
            has = "1 column" if len(words) == 1 else f"{len(words)} columns"
            return f"{path}:{at}: has {has}; {len(names)} are needed: {', '.join(names)}"
        for name, word in zip(names, words, strict=True):
            try:
                _array(name, [word if number(word) is not None else "?"])
            except (ValueError, KeyError, OverflowError):
                return f"{path}:{at}: {name} is {quoted(word)}; {_PARSERS[name][2]} is needed"
    raise AssertionError("no row is wrong")
