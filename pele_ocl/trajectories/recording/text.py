"""CSV and JSON lines: settings at the head, then a line for each frame."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...errors import FormatError
from ...formats import appending, guarded, replacing, unguarded
from ..streaming import Evaluated
from .digits import Letters, column_texts, joined_rows, letters
from .recorder import AREA_UNIT, UNIT, Recorder, Settings, error_texts, numbers_of, unit_of

_AT_ONCE = 8192  # rows that are made at a time, so that their letters stay in a core's cache
_THREADS = 4  # that make rows; NumPy, which makes them, lets them run side by side


class TextRecorder(Recorder):
    """A text file; of a line that was cut off, nothing is kept."""

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

    def resume(self) -> Evaluated | None:
        if not self.path.exists():
            return None
        head = self.head().encode()
        with open(self.path, "rb") as stream:
            there = stream.read(len(head))
            if there != head:
                if not head.startswith(there):
                    self._refuse(stream)
                return None  # killed before it wrote a frame
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

    def append(self, results: Evaluated) -> None:
        if self._stream is None:
            with replacing(self.path) as temporary:
                temporary.write_bytes((self.head() + self.heading(results)).encode())
            self._names = list(results.columns)
            self._stream = open(self.path, "r+b", buffering=0)
            self._stream.seek(0, 2)
        self.require_names(self._names, results)
        n = len(next(iter(results.columns.values())))
        parts = _blocks(self.frames[self.done : self.done + n], results)
        with ThreadPoolExecutor(_THREADS) as pool:
            self._write(b"".join(pool.map(self.lines, *zip(*parts, strict=True))))
        self.done += n

    def _write(self, data: bytes) -> None:
        """Write whole lines, or none where the disk is full."""
        assert self._stream is not None
        end, left = self._stream.tell(), memoryview(data)
        with appending(self.path):
            try:
                while left:
                    left = left[self._stream.write(left) :]
            except OSError:
                self._stream.truncate(end)
                raise

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    @abstractmethod
    def head(self) -> str:
        """The settings."""

    @abstractmethod
    def heading(self, results: Evaluated) -> str:
        """The line above the rows, if there is one."""

    @abstractmethod
    def lines(self, frames: range, results: Evaluated) -> bytes:
        """The lines of some frames."""

    @abstractmethod
    def rows(self, lines: list[str]) -> Evaluated | None:
        """The results that the lines behind the settings hold."""

    @abstractmethod
    def settings_in(self, stream: BinaryIO) -> Settings:
        """The settings of a file, empty for another file."""

    def _refuse(self, stream: BinaryIO) -> None:
        stream.seek(0)
        self.require_settings(self.settings_in(stream))
        raise FormatError(f"{self.path}: holds something else than results of frames; give another name to -o")

    def _read(self, rows: Iterator[tuple[int, Sequence[float | None], str]], names: list[str]) -> Evaluated | None:
        """Results of rows: frame, values, error."""
        values: list[list[float]] = []
        errors = {}
        for k, (frame, row, error) in enumerate(rows):
            self.require_frame(k, frame)
            values.append([math.nan if value is None else value for value in row])
            if error:
                errors[k] = error
        columns = zip(names, zip(*values, strict=True), strict=True)
        return Evaluated({name: np.array(column) for name, column in columns}, errors) if values else None


class CsvRecorder(TextRecorder):
    """CSV as write_table has it: lines of `# name: value`, a header with units, rows; the last column is `error`."""

    def head(self) -> str:
        return "".join(f"# {name}: {value}\n" for name, value in self.settings.items())

    def heading(self, results: Evaluated) -> str:
        columns = results.columns.items()
        heads = [f"{name} [{unit_of(name)}]" if column.dtype.kind == "f" else name for name, column in columns]
        return _csv([[guarded(" ".join(head.split())) for head in ("frame", *heads, "error")]])

    def lines(self, frames: range, results: Evaluated) -> bytes:
        numbers = column_texts([numbers_of(frames), *results.columns.values()])
        errors = [_csv([[guarded(text)]])[:-1] if text else "" for text in error_texts(results)]
        return joined_rows(len(frames), [*(part for text in numbers for part in (text, b",")), _texts(errors), b"\n"])

    def rows(self, lines: list[str]) -> Evaluated | None:
        if len(lines) < 2:
            return None
        heads = next(csv.reader(lines[:1]))[1:-1]
        names = [unguarded(head.removesuffix(f" [{UNIT}]").removesuffix(f" [{AREA_UNIT}]")) for head in heads]
        try:
            found = csv.reader(lines[1:])
            table = ((int(row[0]), [_number(word) for word in row[1:-1]], unguarded(row[-1])) for row in found)
            return self._read(table, names)
        except (ValueError, IndexError) as error:
            raise FormatError(f"{self.path}: holds a row that cannot be read ({error}); start anew") from None

    def settings_in(self, stream: BinaryIO) -> Settings:
        lines = (line.decode("utf-8", "replace").rstrip("\n") for line in stream)
        pairs = (line[2:].partition(": ") for line in lines if line.startswith("# "))
        return {name: value for name, _, value in pairs}


class JsonLinesRecorder(TextRecorder):
    """JSON lines: an object of the settings, then one a frame, with its terms or with the reason why it failed."""

    def head(self) -> str:
        return json.dumps({"settings": self.settings, "unit": UNIT}, ensure_ascii=False) + "\n"

    def heading(self, results: Evaluated) -> str:
        return ""

    def lines(self, frames: range, results: Evaluated) -> bytes:
        numbers = column_texts([numbers_of(frames), *results.columns.values()])
        for column, text in zip(results.columns.values(), numbers[1:], strict=True):
            text[~np.isfinite(column)] = np.frombuffer(b"null".ljust(text.shape[1], b"\0"), np.uint8)
        names = (f"{', ' if k else '{'}{_json(name)}: ".encode() for k, name in enumerate(("frame", *results.columns)))
        errors = [f', "error": {_json(text)}' if text else "" for text in error_texts(results)]
        parts = (part for pair in zip(names, numbers, strict=True) for part in pair)
        return joined_rows(len(frames), [*parts, _texts(errors), b"}\n"])

    def rows(self, lines: list[str]) -> Evaluated | None:
        if not lines:
            return None
        try:
            found = [json.loads(line) for line in lines]
            names = [name for name in found[0] if name not in ("frame", "error")]
            table = ((row["frame"], [row[name] for name in names], row.get("error", "")) for row in found)
            return self._read(table, names)
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{self.path}: holds a row that cannot be read ({error}); start anew") from None

    def settings_in(self, stream: BinaryIO) -> Settings:
        try:
            found = json.loads(stream.readline())["settings"]
        except (ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


def _blocks(frames: range, results: Evaluated) -> Iterator[tuple[range, Evaluated]]:
    """Frames and results, a few at a time."""
    for first in range(0, len(frames), _AT_ONCE):
        end = first + _AT_ONCE
        errors = {k - first: text for k, text in results.errors.items() if first <= k < end}
        columns = {name: column[first:end] for name, column in results.columns.items()}
        yield frames[first:end], Evaluated(columns, errors)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _number(word: str) -> float:
    """A number of a row: an int where it has no point, no exponent and is not NaN."""
    return int(word) if word.lstrip("-").isdigit() else float(word)


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: list[str]) -> Letters:
    if not any(texts):
        return np.zeros((len(texts), 1), np.uint8)
    return letters(np.array([text.encode() for text in texts], "S"))
