"""CSV and JSON Lines recorders: a header with the settings, followed by one line per frame."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from ...common.errors import FormatError
from ...common.writing import appending, replacing
from ...formats import guarded, unguarded
from ..streaming import FrameResults
from .recorder import UNIT, Recorder, Settings, error_texts, numbers_of, unit_of, without_unit

_AT_ONCE = 1024  # rows formatted and written at a time, so that they stay in the cache


class TextRecorder(Recorder):
    """A text file. On resuming, an incomplete last line is removed."""

    def __init__(self, path: Path, settings: Settings, frames: range) -> None:
        super().__init__(path, settings, frames)
        self._stream: io.FileIO | None = None
        self._names: list[str] = []

    def settings_there(self) -> Settings:
        try:
            with open(self.path, "rb") as stream:
                return self.settings_in(stream)
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    def resume(self) -> FrameResults | None:
        if not self.path.exists():
            return None
        head = self.head().encode()
        with open(self.path, "rb") as stream:
            there = stream.read(len(head))
            if there != head:
                if not head.startswith(there):
                    self._refuse(stream)
                return None  # interrupted before the first frame
            lines = [line.decode("utf-8", "replace") for line in stream if line.endswith(b"\n")]
        found = self.rows(lines)
        if found is None:
            return None
        self._names = list(found.columns)
        self._stream = open(self.path, "r+b", buffering=0)
        self._stream.truncate(len(head) + sum(len(line.encode()) for line in lines))
        self._stream.seek(0, 2)
        self.done = len(next(iter(found.columns.values())))
        return found

    def append(self, results: FrameResults) -> None:
        if self._stream is None:
            with replacing(self.path) as temporary:
                temporary.write_bytes((self.head() + self.heading(results)).encode())
            self._names = list(results.columns)
            self._stream = open(self.path, "r+b", buffering=0)
            self._stream.seek(0, 2)
        self.require_names(self._names, results)
        n = len(next(iter(results.columns.values())))
        end = self._stream.tell()
        with appending(self.path):
            try:
                for frames, block in _blocks(self.frames[self.done : self.done + n], results):
                    self._write(self.lines(frames, block))
            except OSError:
                self._stream.truncate(end)
                raise
        self.done += n

    def _write(self, data: bytes) -> None:
        assert self._stream is not None
        left = memoryview(data)
        while left:
            left = left[self._stream.write(left) :]

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    @abstractmethod
    def head(self) -> str:
        """Return the header with the settings."""

    @abstractmethod
    def heading(self, results: FrameResults) -> str:
        """Return the line with column names, if the format has one."""

    @abstractmethod
    def lines(self, frames: range, results: FrameResults) -> bytes:
        """Return the lines of frames."""

    @abstractmethod
    def rows(self, lines: list[str]) -> FrameResults | None:
        """Parse the results from the lines after the header."""

    @abstractmethod
    def settings_in(self, stream: BinaryIO) -> Settings:
        """Read the settings in a file; empty if there are none."""

    def _refuse(self, stream: BinaryIO) -> None:
        stream.seek(0)
        self.require_settings(self.settings_in(stream))
        raise FormatError(f"{self.path}: contains something other than results of frames; choose another name for -o")

    def _read(self, rows: Iterator[tuple[int, Sequence[float | None], str]], names: list[str]) -> FrameResults | None:
        """Convert rows of frame, values and error to results."""
        values: list[list[float]] = []
        errors = {}
        for k, (frame, row, error) in enumerate(rows):
            self.require_frame(k, frame)
            values.append([math.nan if value is None else value for value in row])
            if error:
                errors[k] = error
        columns = zip(names, zip(*values, strict=True), strict=True)
        return FrameResults({name: np.array(column) for name, column in columns}, errors) if values else None


class CsvRecorder(TextRecorder):
    """CSV as in write_table: lines `# name: value`, a header with units, and rows with `error` as the last column."""

    def head(self) -> str:
        return "".join(f"# {name}: {value}\n" for name, value in self.settings.items())

    def heading(self, results: FrameResults) -> str:
        columns = results.columns.items()
        heads = [f"{name} [{unit_of(name)}]" if column.dtype.kind == "f" else name for name, column in columns]
        return _csv([[guarded(" ".join(head.split())) for head in ("frame", *heads, "error")]])

    def lines(self, frames: range, results: FrameResults) -> bytes:
        runs = groupby((numbers_of(frames), *results.columns.values()), lambda column: column.dtype.kind)
        texts = [_texts(list(run), b"nan") for _, run in runs]
        errors = [_csv([[guarded(text)]])[:-1].encode() if text else b"" for text in error_texts(results)]
        return b"\n".join([*map(b",".join, zip(*texts, errors, strict=True)), b""])

    def rows(self, lines: list[str]) -> FrameResults | None:
        if len(lines) < 2:
            return None
        heads = next(csv.reader(lines[:1]))[1:-1]
        names = [unguarded(without_unit(head)) for head in heads]
        try:
            found = csv.reader(lines[1:])
            table = ((int(row[0]), [_number(word) for word in row[1:-1]], unguarded(row[-1])) for row in found)
            return self._read(table, names)
        except (ValueError, IndexError) as error:
            raise FormatError(f"{self.path}: contains a row that cannot be read ({error}); start again") from None

    def settings_in(self, stream: BinaryIO) -> Settings:
        lines = (line.decode("utf-8", "replace").rstrip("\n") for line in stream)
        pairs = (line[2:].partition(": ") for line in lines if line.startswith("# "))
        return {name: value for name, _, value in pairs}


class JsonLinesRecorder(TextRecorder):
    """JSON Lines: an object with the settings, followed by one object per frame with its terms and error, if any."""

    def head(self) -> str:
        return json.dumps({"settings": self.settings, "unit": UNIT}, ensure_ascii=False) + "\n"

    def heading(self, results: FrameResults) -> str:
        return ""

    def lines(self, frames: range, results: FrameResults) -> bytes:
        texts = [_texts([column], b"null") for column in (numbers_of(frames), *results.columns.values())]
        errors = [b', "error": ' + orjson.dumps(text) if text else b"" for text in error_texts(results)]
        fields = (orjson.dumps(name).replace(b"%", b"%%") + b": %b" for name in ("frame", *results.columns))
        row = b"{%b%%b}\n" % b", ".join(fields)
        return b"".join([row % values for values in zip(*texts, errors, strict=True)])

    def rows(self, lines: list[str]) -> FrameResults | None:
        if not lines:
            return None
        try:
            found = [orjson.loads(line) for line in lines]
            names = [name for name in found[0] if name not in ("frame", "error")]
            table = ((row["frame"], [row[name] for name in names], row.get("error", "")) for row in found)
            return self._read(table, names)
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{self.path}: contains a row that cannot be read ({error}); start again") from None

    def settings_in(self, stream: BinaryIO) -> Settings:
        try:
            found = json.loads(stream.readline())["settings"]
        except (ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


def _blocks(frames: range, results: FrameResults) -> Iterator[tuple[range, FrameResults]]:
    """Split frames and results into blocks."""
    for first in range(0, len(frames), _AT_ONCE):
        end = first + _AT_ONCE
        errors = {k - first: text for k, text in results.errors.items() if first <= k < end}
        columns = {name: column[first:end] for name, column in results.columns.items()}
        yield frames[first:end], FrameResults(columns, errors)


def _texts(columns: Sequence[NDArray[np.generic]], missing: bytes) -> list[bytes]:
    """Format rows of columns with the same type, separated by commas, with the shortest exact text of each number.

    missing : text for NaN and infinity
    """
    table = np.stack(columns, axis=1)
    table = table.astype(np.float64, copy=False) if table.dtype.kind == "f" else table
    is_one = len(columns) == 1  # nested lists would take twice the time
    text = orjson.dumps(table.ravel() if is_one else table, option=orjson.OPT_SERIALIZE_NUMPY)
    return text.strip(b"[]").replace(b"null", missing).split(b"," if is_one else b"],[")


def _csv(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _number(word: str) -> float:
    """Parse a number, as an int if it consists only of digits."""
    return int(word) if word.lstrip("-").isdigit() else float(word)
