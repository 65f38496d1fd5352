"""Reports: tables of results with metadata, which can be printed and saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .common.errors import InputError, Suggests
from .common.extras import extra
from .common.notes import one_line

if TYPE_CHECKING:
    import pandas

__all__ = ["Column", "Framed", "Report", "Reported", "text_table"]

_MOST_ROWS = 24  # rows in a repr, the first and the last ones
_WIDEST = 120  # characters per line; further columns are printed below


@dataclass(frozen=True, eq=False)
class Column:
    """Column of a report.

    values : (n,) numbers or strings, or (n, k) numbers, which are saved but not printed; unknown numbers are masked
    unit : "" for strings and plain numbers; form : format of printed numbers, such as ".3f"; head : printed header, by
        default the name with spaces
    shown : False for a column that is saved but not printed
    names : True for a column of names, which are printed with spaces, like the headers
    """

    values: ArrayLike
    unit: str = ""
    form: str = ",.3f"
    head: str = ""
    shown: bool = True
    names: bool = False


class Report:
    """Table of results with metadata.

    title : printed above the table
    columns : Column or plain values by name, all with n rows
    facts : metadata in JSON form, by name: program, device, settings, sums
    notes : sentences printed below the table, such as why a cell is empty; also saved as `notes` in files and JSON
    about : lines printed below the title, such as the force field and the solvent

    `report["coulomb"]` are the values of a column. Iteration yields the rows as dictionaries. `print(report)` shows the
    table, `save` writes all columns and facts, and `to_dataframe` or `pandas.DataFrame(report)` converts to pandas.

        >>> report = Report("Terms", {"term": ["bond", "angle"], "energy": Column([1.5, 2.25], "kcal/mol")})
        >>> print(report)
        Terms
        term   energy [kcal/mol]
        bond               1.500
        angle              2.250
        >>> report["energy"].sum()
        np.float64(3.75)
    """

    def __init__(
        self,
        title: str,
        columns: Mapping[str, Column | ArrayLike],
        facts: Mapping[str, object] = {},  # never modified
        notes: Sequence[str] = (),
        about: Sequence[str] = (),
    ) -> None:
        self.title, self.notes, self.about = title, tuple(notes), tuple(about)
        self.facts = {**facts, **({"notes": list(self.notes)} if self.notes else {})}
        self.columns = {name: of if isinstance(of, Column) else Column(of) for name, of in columns.items()}
        self._arrays = {name: np.asanyarray(of.values) for name, of in self.columns.items()}
        lengths = {name: len(values) for name, values in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns of one report have different lengths: {lengths}")

    def keys(self) -> Iterator[str]:
        """Names of the columns."""
        return iter(self.columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the values (n,) or (n, k) of a column."""
        return self._arrays[name]

    def __len__(self) -> int:
        """Return the number of rows."""
        return next((len(values) for values in self._arrays.values()), 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries of values by column, None for unknown values.

        >>> list(Report("Terms", {"term": ["bond", "angle"], "energy": [1.5, 2.25]}))
        [{'term': 'bond', 'energy': 1.5}, {'term': 'angle', 'energy': 2.25}]
        """
        lists = [self[name].tolist() for name in self.keys()]
        for values in zip(*lists, strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the columns as a pandas DataFrame, with units and facts in its `attrs`.

        Raises InputError if pandas is not installed.

        >>> frame = Report("Terms", {"energy": Column([1.5], "kcal/mol")}).to_dataframe()  # doctest: +SKIP
        >>> frame.attrs["units"]  # doctest: +SKIP
        {'energy': 'kcal/mol'}
        """
        library: Any = extra("pandas", "a DataFrame")
        columns = {name: _column(self[name]) for name in self.keys()}
        frame: pandas.DataFrame = library.DataFrame(columns)
        frame.attrs.update({**self.facts, "units": self._units})
        return frame

    def to_json(self) -> dict[str, Any]:
        """Return facts, units and columns in JSON form; NaN and unknown values become None.

        >>> Report("Terms", {"energy": Column([1.5, float("nan")], "kcal/mol")}).to_json()
        {'units': {'energy': 'kcal/mol'}, 'columns': {'energy': [1.5, None]}}
        """
        return {**self.facts, "units": self._units, "columns": {name: _plain(self[name]) for name in self.keys()}}

    def save(self, path: str | PathLike[str], inputs: Sequence[str | PathLike[str]] = ()) -> None:
        """Write the table as HDF5, CSV or JSON, depending on the suffix. inputs : files that must not be overwritten

        Raises FormatError for an unknown suffix or a file that cannot be written.
        """
        from .formats.tables import write_table

        write_table(path, self._arrays, self._units, self.facts, inputs)

    @property
    def _units(self) -> dict[str, str]:
        return {name: of.unit for name, of in self.columns.items() if of.unit}

    def _cells(self) -> tuple[list[str], list[list[str]], str]:
        """Return header, rows and alignment of the printed table."""
        shown = [name for name in self.keys() if self[name].ndim == 1 and self.columns[name].shown]
        n = len(self)
        rows = range(n) if n <= _MOST_ROWS else [*range(_MOST_ROWS - 4), -1, *range(n - 3, n)]
        heads = [self._head(name) for name in shown]
        cells = [["..." if k < 0 else self._cell(name, k) for name in shown] for k in rows]
        align = "".join("<" if self[name].dtype.kind in "UO" else ">" for name in shown)
        return heads, cells, align

    def _head(self, name: str) -> str:
        of = self.columns[name]
        head = of.head or _spaced(name)
        return f"{head} [{of.unit}]" if of.unit else head

    def _cell(self, name: str, k: int) -> str:
        value = self[name][k]
        if value is np.ma.masked:
            return ""
        if isinstance(value, float | np.floating):
            text = format(float(value), self.columns[name].form)
            return text.removeprefix("-") if _is_zero(text) else text
        return one_line(_spaced(value) if self.columns[name].names else str(value))

    def __str__(self) -> str:
        return self.text(_WIDEST)

    def text(self, widest: int | None = None) -> str:
        """Return the table as text.

        widest : characters per line, with further columns printed below; unlimited by default, so that each row is a
            single line
        """
        heads, cells, align = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        tables = [
            text_table([heads[k] for k in block], [[row[k] for k in block] for row in cells], [align[k] for k in block])
            for block in _blocks(widths, widest)
        ]
        above = [self.title, *self.about, ""] if self.about else [self.title]
        return "\n".join([*above, "\n\n".join(tables), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, cells, align = self._cells()
        sides = ["left" if side == "<" else "right" for side in align]

        def line(tag: str, texts: Sequence[str]) -> str:
            parts = (
                f'<{tag} style="text-align:{side}">{escape(text)}</{tag}>'
                for text, side in zip(texts, sides, strict=True)
            )
            return f"<tr>{''.join(parts)}</tr>"

        body = "".join(line("td", cell) for cell in cells)
        notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.notes)
        caption = f"<caption>{'<br>'.join(map(escape, [self.title, *self.about]))}</caption>"
        return f"<table>{caption}<thead>{line('th', heads)}</thead>{body}</table>{notes}"


class Framed(Protocol):
    """Interface of results that can be converted to a table, text, HTML for notebooks, and a pandas DataFrame."""

    @abstractmethod
    def table(self) -> Report:
        """Return the result as a table."""

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text report of the result, by default the table.

        verbose : include all constants and steps; total : total time to report, s
        """
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame, with units in `attrs["units"]`.

        Raises InputError if pandas is not installed.
        """
        return self.table().to_dataframe()


class Reported(Framed, Protocol):
    """Interface of the results of all public functions.

    `to_json` and `save` return and write the same data as the command line.
    """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the result in JSON form; docs/records.md."""

    @abstractmethod
    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to a file, with the format determined by its suffix."""

    if not TYPE_CHECKING:
        __getattr__ = Suggests.__getattr__


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """Format a text table. align : < or > for each column"""
    lines = [tuple(heads), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, align, widths, strict=True)).rstrip()
        for line in lines
    )


def masked(values: Sequence[float | None]) -> NDArray[Any]:
    """Return a masked array, in which None is masked; the type of integers is preserved."""
    return np.ma.array([value or 0 for value in values], mask=[value is None for value in values])


def _spaced(name: str) -> str:
    """Return a name as printed, with spaces instead of underscores."""
    return name.replace("_", " ")


def _blocks(widths: Sequence[int], widest: int | None) -> list[list[int]]:
    """Divide the columns into tables that fit on a line; each begins with the first column."""
    if widest is None:
        return [list(range(len(widths)))]
    blocks = [list(range(min(1, len(widths))))]
    for k in range(1, len(widths)):
        if len(blocks[-1]) > 1 and sum(widths[of] + 2 for of in blocks[-1]) + widths[k] > widest:
            blocks.append([0])
        blocks[-1].append(k)
    return blocks


def _is_zero(text: str) -> bool:
    """Return whether a formatted number is zero, so that its sign can be removed."""
    return text.startswith("-") and not any(digit in text for digit in "123456789") and "n" not in text


def _column(values: NDArray[Any]) -> Any:
    """Return values of a column for pandas: NaN or None if unknown, and arrays for rows of several numbers."""
    if values.ndim > 1:
        return list(values)
    if np.ma.is_masked(values):
        kind = np.float64 if values.dtype.kind in "iuf" else object
        return np.ma.filled(values.astype(kind), np.nan if kind is np.float64 else None)
    return np.asarray(values)


def _plain(values: NDArray[Any]) -> list[Any]:
    """Return values in JSON form."""
    found: list[Any] = values.tolist()
    return [_number(of) for of in found]


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(of) for of in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
