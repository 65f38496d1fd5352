"""Reports of PELE: columns of each pose, read and written with further ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from ..atoms import Floats
from ..common.errors import FormatError
from ..common.textfiles import lines
from ..common.writing import replacing

TOTAL = ("currentEnergy", "Energy")  # the second in reports of builds before revision 12377
BINDING = ("Binding Energy",)
_BETWEEN = " " * 4  # as PELE writes columns, of which PELE's tools split names of two words
_COLUMNS = re.compile(r"\s{2,}|\t")


@dataclass(frozen=True)
class Report:
    """Columns of a report, as texts.

    path : of the file; names : of the columns; rows : of each pose, its values
    """

    path: Path
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, *names: str) -> Floats | None:
        """Return the values (m,) of the first of these columns that is there, in any case; None if there is none.

        Raises FormatError for values that are no numbers.
        """
        places = [k for name in names for k, own in enumerate(self.names) if own.lower() == name.lower()]
        if not places:
            return None
        try:
            return np.array([float(row[places[0]]) for row in self.rows])
        except ValueError as error:
            name = self.names[places[0]]
            raise FormatError(f"{self.path}: the column {name} holds something else than numbers ({error})") from None

    def write(self, path: str | PathLike[str], further: Mapping[str, Floats]) -> None:
        """Write the report with further columns after its own, (m,) each, so that PELE's tools read it."""
        columns = [[f"{value:.9g}" for value in values] for values in further.values()]
        texts = [[*self.names, *further], *([*row, *new] for row, *new in zip(self.rows, *columns, strict=True))]
        with replacing(path, [self.path]) as temporary:
            temporary.write_text("".join(_BETWEEN.join(text) + _BETWEEN + "\n" for text in texts))


def read_report(path: str | PathLike[str]) -> Report:
    """Read a report. Raises FormatError, with the line, for a file that is none."""
    read = [line.rstrip() for line in lines(path, "PELE report")]
    if not read or not read[0].startswith("#"):
        raise FormatError(f"{path}: is no report of PELE, whose first line begins with #Task")
    rows = [tuple(line.split()) for line in read[1:] if line.strip()]
    names = _names(read[0], len(rows[0]) if rows else None)
    for k, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise FormatError(f"{path}:{k}: has {len(row)} values, the first line {len(names)} names; remove the line")
    return Report(Path(path), names, tuple(rows))


def _names(line: str, n: int | None) -> tuple[str, ...]:
    """Split the names of columns, some with two words; n : values of a row"""
    names = tuple(name for name in _COLUMNS.split(line.strip()) if name)
    if n in (None, len(names)):
        return names
    return tuple(
        name.replace("\0", " ") for name in re.sub(r"(?i)(binding) (energy)", "\\1\0\\2", line).split(" ") if name
    )
