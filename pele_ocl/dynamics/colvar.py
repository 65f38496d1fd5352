"""COLVAR files in PLUMED's format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..atoms import Floats
from ..common.writing import replacing


def write_colvar(path: Path, columns: Mapping[str, Sequence[float] | Floats]) -> None:
    """Write a COLVAR file: a line with the fields, then rows of numbers. columns : by field, "time" (ps) first

    Raises FormatError if the file cannot be written.
    """
    lines = [head_of(columns), *map(line_of, zip(*columns.values(), strict=True))]
    with replacing(path) as temporary:
        Path(temporary).write_text("".join(lines), encoding="utf-8")


def head_of(fields: Iterable[str]) -> str:
    """Return the first line of a COLVAR file."""
    return f"#! FIELDS {' '.join(fields)}\n"


def line_of(values: Iterable[float]) -> str:
    """Return a line with one number for each field."""
    return f" {' '.join(f'{value:.6f}' for value in values)}\n"
