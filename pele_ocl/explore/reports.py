"""Reports in PELE's format: a header line, then a row for the initial state and each accepted step."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType

import numpy as np

from ..atoms import Floats
from ..common.errors import FormatError
from ..common.textfiles import lines
from ..common.writing import appending, replacing

HEADS = ("#Task", "Step", "numberOfAcceptedPeleSteps", "currentEnergy")
_BETWEEN = " " * 4  # column separator of PELE's tools; column names may contain single blanks
TOTAL = ("currentEnergy", "Energy")  # "Energy" in reports of PELE before revision 12377
BINDING = ("Binding Energy",)
_COLUMNS = re.compile(r"\s{2,}|\t")


def numbered(path: str | Path, number: int) -> Path:
    """Insert an explorer's number into a path: `trajectory.pdb` becomes `trajectory_3.pdb`."""
    whole = Path(path)
    return whole.with_name(f"{whole.stem}_{number}{whole.suffix}")


def line_of(values: Sequence[str]) -> str:
    """Format a line as PELE does, with four blanks after each column."""
    return "".join(f"{value}{_BETWEEN}" for value in values) + "\n"


def written(value: float) -> str:
    """Format a number with six significant digits."""
    return f"{value:.6g}"


def report_head(columns: Sequence[str]) -> str:
    """Return the header line. columns : names of the metrics"""
    return line_of([*HEADS, *columns])


def report_row(task: int, step: int, accepted: int, energy: float, values: Sequence[float]) -> str:
    """Return the row of an accepted step. accepted : number of accepted steps; energy : kcal/mol; values : metrics"""
    return line_of([str(task), str(step), str(accepted), *(written(value) for value in (energy, *values))])


class AppendedFile:
    """Text file to which lines are appended, also when an interrupted run is continued.

    path : path of the file; size : its size in bytes
    """

    def __init__(self, path: Path, head: str, size: int | None = None) -> None:
        """size : size left by an earlier run in bytes, None for a new file

        Raises FormatError if the file cannot be written, or has changed since the earlier run.
        """
        self.path = path
        begin = head.encode()
        if size is None:
            with replacing(path) as temporary:
                temporary.write_bytes(begin)
        self.size = len(begin) if size is None else size
        try:
            self._stream = open(path, "r+b", buffering=0)
        except OSError as error:
            raise FormatError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}") from None
        if self._stream.read(len(begin)) != begin or self._stream.seek(0, 2) < self.size:
            self._stream.close()
            raise FormatError(f"{path}: was changed after the interrupted run; start again without `resume`")
        self._stream.truncate(self.size)

    def __enter__(self) -> AppendedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def append(self, text: str) -> None:
        """Append text. Raises FormatError if this fails, e.g. because the disk is full."""
        data = text.encode()
        with appending(self.path):
            self._stream.seek(self.size)
            left = memoryview(data)
            while left:
                left = left[self._stream.write(left) :]
        self.size += len(data)


@dataclass(frozen=True)
class Report:
    """Columns of a report, as strings.

    path : path of the file; names : column names; rows : values of each row
    """

    path: Path
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, *names: str) -> Floats | None:
        """Return the values (m,) of the first of these columns that the report contains, None if it contains none.

        Names are case-insensitive. Raises FormatError for values that are not numbers.
        """
        places = [k for name in names for k, own in enumerate(self.names) if own.lower() == name.lower()]
        if not places:
            return None
        try:
            return np.array([float(row[places[0]]) for row in self.rows])
        except ValueError as error:
            name = self.names[places[0]]
            raise FormatError(
                f"{self.path}: the column {name} contains something other than numbers ({error})"
            ) from None

    def write(self, path: str | PathLike[str], further: Mapping[str, Floats]) -> None:
        """Write the report in PELE's format with additional columns, (m,) each."""
        columns = [[f"{value:.9g}" for value in values] for values in further.values()]
        texts = [[*self.names, *further], *([*row, *new] for row, *new in zip(self.rows, *columns, strict=True))]
        with replacing(path, [self.path]) as temporary:
            temporary.write_text("".join(_BETWEEN.join(text) + _BETWEEN + "\n" for text in texts))


def read_report(path: str | PathLike[str]) -> Report:
    """Read a report. Raises FormatError for a file that is not a report of PELE."""
    read = [line.rstrip() for line in lines(path, "PELE report")]
    if not read or not read[0].startswith("#"):
        raise FormatError(f"{path}: is not a report of PELE, whose first line begins with #Task")
    rows = [tuple(line.split()) for line in read[1:] if line.strip()]
    names = _names(read[0], len(rows[0]) if rows else None)
    for k, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise FormatError(f"{path}:{k}: has {len(row)} values, the first line {len(names)} names; remove the line")
    return Report(Path(path), names, tuple(rows))


def _names(line: str, n: int | None) -> tuple[str, ...]:
    """Split the header into column names, some of two words. n : number of values in a row"""
    names = tuple(name for name in _COLUMNS.split(line.strip()) if name)
    if n in (None, len(names)):
        return names
    return tuple(
        name.replace("\0", " ") for name in re.sub(r"(?i)(binding) (energy)", "\\1\0\\2", line).split(" ") if name
    )
