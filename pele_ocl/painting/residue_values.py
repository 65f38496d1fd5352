"""Residue values in CSV files: a decomposition written by `binding` or gmx_MMPBSA, or two columns."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike

from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines

_DECOMPOSITION = "energy decomposition analysis"
_TOTAL = 16  # column of the total in a decomposition, after the name and three numbers per group
_Row = tuple[int, list[str]]


@dataclass(frozen=True)
class ResidueValues:
    """Residue values. values : by residue name, `A:LEU4` or `A:LEU:4`; unit, title : of the column, or ""."""

    values: dict[str, float]
    unit: str
    title: str


def read_residue_values(path: str | PathLike[str]) -> ResidueValues:
    """Read residue values from a CSV file.

    For a decomposition by residue, these are the means of TOTAL in the section DELTAS, kcal/mol. Other files have two
    columns below a header `residue,value` or `residue,value [unit]`; # begins a comment.

    Raises FormatError, with file and line, for an invalid file, and for a decomposition by pairs.
    """
    source = read_file(path)
    rows = list(_rows(source))
    if any(row and row[0].lower().startswith(_DECOMPOSITION) for _, row in rows[:5]):
        return ResidueValues(_values(source, _deltas(source, rows)), "kcal/mol", "contribution to the binding energy")
    kept = [(n, row) for n, row in rows if any(row) and not row[0].startswith("#")]
    if not kept or len(kept[0][1]) != 2 or kept[0][1][0].lower() != "residue":
        at = kept[0][0] if kept else 1
        raise FormatError(f"{source}:{at}: neither a decomposition of `binding` nor a header residue,value")
    title, _, unit = kept[0][1][1].partition("[")
    return ResidueValues(_values(source, iter(kept[1:])), unit.rstrip("] "), title.strip())


def _rows(source: InputFile) -> Iterator[_Row]:
    """Yield each row with the number of its last line, since quoted cells may span several lines."""
    reader = csv.reader(lines(source, "CSV"))
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise FormatError(f"{source}:{reader.line_num}: {error}") from None


def _deltas(source: InputFile, rows: list[_Row]) -> Iterator[_Row]:
    """Yield residue name and mean total of each row in the section DELTAS."""
    start = next((k for k, (_, row) in enumerate(rows) if row[:1] == ["DELTAS:"]), None)
    if start is None:
        raise FormatError(f"{source}: has no section DELTAS; give a decomposition of a binding energy")
    for n, row in rows[start + 1 :]:
        if not any(row):
            return
        if row[0] == "Resid 1":
            raise FormatError(f"{source}:{n}: a decomposition by pairs; write it by residue, with idecomp 1 or 2")
        if ":" in row[0].rstrip(":"):
            if len(row) <= _TOTAL:
                raise FormatError(f"{source}:{n}: has {len(row)} columns; expected {_TOTAL + 1} or more")
            yield n, [row[0].partition(":")[2], row[_TOTAL]]


def _values(source: InputFile, rows: Iterator[_Row]) -> dict[str, float]:
    found: dict[str, float] = {}
    for n, row in rows:
        if len(row) != 2:
            raise FormatError(f"{source}:{n}: has {len(row)} columns; expected a residue and its value")
        name, text = row
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise FormatError(f"{source}:{n}: the value {text!r} of {name} is not a finite number")
        if name in found:
            raise FormatError(f"{source}:{n}: {name} already has a value")
        found[name] = value
    if not found:
        raise FormatError(f"{source}: contains no values of residues")
    return found
