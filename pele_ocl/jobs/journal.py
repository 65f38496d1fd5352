"""Journals of records, written during a job, used to resume interrupted jobs and to merge shards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO

from ..common.errors import FormatError, InputError
from ..common.hashing import sha256_of
from ..common.writing import appending, replacing
from .records import MORE, SCHEMA, Record
from .shards import Shard, require_all

SHARD = "shard"  # key of the first line
_KIND, _SETTINGS, _ITEMS = "journal", "settings", "structures"


@dataclass(frozen=True)
class JournalContent:
    """Content of a journal.

    kind : kind of job; settings : settings that identify the job; shard : "" for a complete job
    items : names of the items of all shards, empty for a complete job
    records : records by name, in the order of the file
    lines : line of each record in the file
    """

    kind: str
    settings: Mapping[str, str]
    shard: str = ""
    items: Sequence[str] = ()
    records: dict[str, Record] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)

    def in_order(self) -> list[Record]:
        """Return the records of all shards in the order of the items, with duplicates for repeated items."""
        return [self.records[name] for name in self.items or self.records]


class Journal:
    """File of JSON lines: the settings, then one record per line. An incomplete last line is ignored.

    An existing file is replaced when the first record is written. A job calls `begin` before it overwrites an output
    file, so that a journal always describes the files on disk.

    records : records of an earlier run, by name, after a call of `resume`
    """

    def __init__(
        self, path: Path | None, settings: Mapping[str, str], *, kind: str = "job", shard: Shard | None = None,
        items: Iterable[str] = (), waits: bool = False,
    ) -> None:  # fmt: skip
        """Set up a journal; nothing is written. path : None for no file

        shard : this part of the job; items : names of the items of all parts
        waits : True to delay records of failures until the first success, so that a run without any success does not
            replace an earlier file
        """
        head: dict[str, object] = {_KIND: kind, "schema": SCHEMA, _SETTINGS: dict(settings)}
        if shard is not None:
            head |= {SHARD: str(shard), _ITEMS: list(items)}
        self.path, self.kind, self.settings = path, kind, settings
        self.records = dict[str, Record]()
        self._head, self._kept = json.dumps(head) + "\n", ""
        self._is_shard, self._waits = shard is not None, waits
        self._waiting = b""
        self._stream: IO[bytes] | None = None
        self._has_notes = False
        self.notes = Notes(path, sha256_of(self._head)[:16])

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Shards can be merged even if all items of one failed.
        if error is None and self._is_shard and self._waiting:
            self._write()
        if self._stream is not None:
            self._stream.close()

    def resume(self, counts: Callable[[Record], bool] | None = None) -> dict[str, Record]:
        """Read the records of an earlier run, if the file exists.

        counts : function that returns whether a record is still valid; by default all records are

        Raises FormatError for a journal with other settings or of another shard, and for files that are no journal.
        """
        if self.path is None:
            return {}
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
            if not text.startswith(self._head):
                others = _differing(text.partition("\n")[0], self._head)
                which = f" ({others})" if others else ""
                raise FormatError(
                    f"{self.path}: was written with other settings{which}; resume with the same settings, or "
                    "choose another output"
                )
            found = read_journal(self.path)
            for name, record in found.records.items():
                if counts is None or counts(record):
                    self._take(record, found.lines[name])
        for notes in self.notes.files():
            for record in notes_in(notes):
                if record.structure not in self.records and counts is not None and counts(record):
                    self._take(record, _line(record))
                    self._has_notes = True
        return self.records

    def _take(self, record: Record, line: str) -> None:
        self.records[record.structure] = record
        self._kept += line

    def clear_notes(self) -> None:
        """Remove the notes of earlier workers, after saving them to the journal."""
        if self._has_notes:
            self.begin()
        self.notes.clear()

    def begin(self) -> None:
        """Replace the file of an earlier run. Raises FormatError if it cannot be written."""
        if self.path is None or self._stream is not None:
            return
        make_folder(self.path.parent)
        with replacing(self.path) as temporary:
            temporary.write_text(self._head + self._kept, encoding="utf-8")
        self._stream = open(self.path, "ab", buffering=0)

    def add(self, record: Record) -> None:
        """Append a record. Raises FormatError if this fails, e.g. if the disk is full."""
        if self.path is None:
            return
        self._waiting += _line(record).encode()
        if self._stream is not None or not (self._waits and record.failed):
            self._write()

    def _write(self) -> None:
        self.begin()
        assert self.path is not None
        assert self._stream is not None
        end = self._stream.tell()
        with appending(self.path):
            try:
                left = memoryview(self._waiting)
                while left:
                    left = left[self._stream.write(left) :]
            except OSError:
                self._stream.truncate(end)
                raise
        self._waiting = b""


@dataclass(frozen=True)
class Notes:
    """Files next to a journal, in which workers record each item of a group, so that others can continue after a crash.

    journal : path of the journal, None for no notes; run : identifier of the job
    """

    journal: Path | None
    run: str

    @property
    def folder(self) -> Path | None:
        """Folder of the note files."""
        return None if self.journal is None else self.journal.with_name(f"{self.journal.name}.groups")

    def path(self, names: Sequence[str]) -> Path | None:
        """Return the file for a group of items; None for a single item, which needs no notes."""
        return None if self.folder is None or len(names) < 2 else self.folder / f"{self.run}-{_mark(names)}.jsonl"

    def files(self) -> list[Path]:
        """Return the files of this job."""
        return [] if self.folder is None else sorted(self.folder.glob(f"{self.run}-*.jsonl"))

    def all_files(self) -> list[Path]:
        """Return the files of all jobs."""
        return [] if self.folder is None else sorted(self.folder.glob("*.jsonl"))

    def clear(self, names: Sequence[str] | None = None) -> None:
        """Remove the file of a group. names : items of the group; by default all files, also those of other jobs"""
        paths = self.all_files() if names is None else [self.path(names)]
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):  # not empty, or no folder
                self.folder.rmdir()


def add_note(path: Path, record: Record) -> None:
    """Append a record to the notes of a group. Raises FormatError if this fails."""
    make_folder(path.parent)
    with appending(path), open(path, "ab", buffering=0) as stream:
        stream.write(_line(record).encode())


def notes_in(path: Path) -> list[Record]:
    """Read the notes of a group, without incomplete lines; an empty list if there is no file."""
    found = list[Record]()
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                found.append(Record.from_dict(json.loads(line)))
    return found


def _mark(names: Sequence[str]) -> str:
    return sha256_of(list(names))[:16]


def _line(record: Record) -> str:
    """Convert a record to a line of JSON. Raises InputError if JSON cannot represent the result."""
    line = record.to_dict() | ({MORE: record.more} if record.more else {})
    try:
        return json.dumps(line, allow_nan=False) + "\n"
    except (ValueError, TypeError) as error:
        raise InputError(f"{record.structure}: its result cannot be written as JSON: {error}") from None


def make_folder(folder: Path) -> None:
    """Create a folder and its parents. Raises FormatError if this fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{folder}: this folder cannot be created: {os.strerror(error.errno or 0)}") from None


def read_journal(path: Path) -> JournalContent:
    """Read a journal, without an incomplete last line. Raises FormatError if the file is not a journal."""
    try:
        head, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        of = json.loads(head)
        found = JournalContent(of[_KIND], of[_SETTINGS], of.get(SHARD, ""), of.get(_ITEMS, ()))
        for line in lines:
            record = Record.from_dict(json.loads(line))
            found.records.pop(record.structure, None)  # the last record of a name wins and keeps its position
            found.records[record.structure] = record
            found.lines[record.structure] = line + "\n"
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{path}: is not a journal of records, or contains a line that cannot be read ({error}); start again"
        ) from None
    return found


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal, from its first bytes."""
    with open(path, "rb") as stream:
        return stream.read(len(_KIND) + 5) == f'{{"{_KIND}": '.encode()


def merged(paths: Iterable[str | PathLike[str]]) -> JournalContent:
    """Merge the journals of all shards of a job, with records in the order of the items.

    Raises FormatError unless every shard is given exactly once and is complete.
    """
    read = {path: read_journal(path) for path in map(Path, paths)}
    if not read:
        raise InputError("no journal is given; give those of all shards")
    heads: dict[Path, dict[str, object]] = {}
    for path, of in read.items():
        heads[path] = {"kind": of.kind, "settings": of.settings, "items": of.items}
        heads[path] |= {SHARD: of.shard} if of.shard else {}
    whole = JournalContent(*next((of.kind, of.settings, "", of.items) for of in read.values()))
    for path in require_all(heads):
        of = read[path]
        wanted = Shard.of(of.shard).part(of.items, "structures")
        missing = [name for name in wanted if name not in of.records]
        if missing:
            raise FormatError(
                f"{path}: {len(missing):,} of {len(wanted):,} structures are missing; run this shard again with "
                "`resume`"
            )
        whole.records.update((name, of.records[name]) for name in wanted)
    return whole


def _differing(one: str, other: str) -> str:
    """Return the names of settings that differ between two journal headers; "" if one is invalid."""
    try:
        heads = [json.loads(head) for head in (one, other)]
        first, second = (dict(head[_SETTINGS], **{"version of records": head["schema"]}) for head in heads)
    except (ValueError, KeyError, TypeError):
        return ""
    return ", ".join(sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)))
