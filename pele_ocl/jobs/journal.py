"""Records written down as they are computed, in a file that an interrupted job continues and that shards leave."""

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

SHARD = "shard"  # of a head: which one a file is of
_KIND, _SETTINGS, _ITEMS = "journal", "settings", "structures"


@dataclass(frozen=True)
class JournalContent:
    """Content of a journal.

    kind : of its job; settings : that identify it; shard : "" for a complete job
    items : names of the items of all shards, empty for a complete job
    records : by name, in the order in which they were written
    lines : of each record, as in the file
    """

    kind: str
    settings: Mapping[str, str]
    shard: str = ""
    items: Sequence[str] = ()
    records: dict[str, Record] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)

    def in_order(self) -> list[Record]:
        """Return the records of all shards in the order of their items; twice if an item was given twice."""
        return [self.records[name] for name in self.items or self.records]


class Journal:
    """JSON lines: the settings, then each record. An incomplete last line is ignored.

    The file replaces an earlier one when the first record is written. A job that replaces one of its files calls
    `begin` first. So a journal always describes the files on disk.

    records : of an earlier run, by name, after `resume` was called
    """

    def __init__(
        self, path: Path | None, settings: Mapping[str, str], *, kind: str = "job", shard: Shard | None = None,
        items: Iterable[str] = (), waits: bool = False,
    ) -> None:  # fmt: skip
        """path : None for no file; shard : the part that this is, of the items of these names

        waits : True to write records of failures with the first success; a run that can do nothing leaves an earlier
            file alone
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
        # Shards are merged even where all items of one failed.
        if error is None and self._is_shard and self._waiting:
            self._write()
        if self._stream is not None:
            self._stream.close()

    def resume(self, counts: Callable[[Record], bool] | None = None) -> dict[str, Record]:
        """Read the records of an earlier run; none if there is no file.

        counts : returns whether a record is still valid; by default all are

        Raises FormatError for a journal with other settings or of another shard, and for other files.
        """
        if self.path is None:
            return {}
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
            if not text.startswith(self._head):
                others = _differing(text.partition("\n")[0], self._head)
                which = f" ({others})" if others else ""
                raise FormatError(
                    f"{self.path}: was made with other settings{which}; resume with the same, or name another output"
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
        """Remove the notes of earlier workers after they were added to the journal."""
        if self._has_notes:
            self.begin()
        self.notes.clear()

    def begin(self) -> None:
        """Replace the file of an earlier run by this one. Raises FormatError if it cannot be written."""
        if self.path is None or self._stream is not None:
            return
        make_folder(self.path.parent)
        with replacing(self.path) as temporary:
            temporary.write_text(self._head + self._kept, encoding="utf-8")
        self._stream = open(self.path, "ab", buffering=0)

    def add(self, record: Record) -> None:
        """Write a record down. Raises FormatError if this fails, e.g. on a full disk."""
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
    """Files beside a journal: workers note down each item of a group, so that others can continue after a crash.

    journal : None for no notes; run : distinguishes the files of other jobs
    """

    journal: Path | None
    run: str

    @property
    def folder(self) -> Path | None:
        """Folder of the files."""
        return None if self.journal is None else self.journal.with_name(f"{self.journal.name}.groups")

    def path(self, names: Sequence[str]) -> Path | None:
        """File of the group of these items; None for one item, whose record is its task's result."""
        return None if self.folder is None or len(names) < 2 else self.folder / f"{self.run}-{_mark(names)}.jsonl"

    def files(self) -> list[Path]:
        """List the files of this job."""
        return [] if self.folder is None else sorted(self.folder.glob(f"{self.run}-*.jsonl"))

    def clear(self, names: Sequence[str] | None = None) -> None:
        """Remove the file of a group; names : by default the files of all, of other jobs, too"""
        paths = self.folder.glob("*.jsonl") if names is None and self.folder is not None else [self.path(names or ())]
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):  # others have notes, or there is no folder
                self.folder.rmdir()


def add_note(path: Path, record: Record) -> None:
    """Append a record to the notes of a group. Raises FormatError if that fails."""
    make_folder(path.parent)
    with appending(path), open(path, "ab", buffering=0) as stream:
        stream.write(_line(record).encode())


def notes_in(path: Path) -> list[Record]:
    """Read the notes of a group, without incomplete lines; none if there is no file."""
    found = list[Record]()
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                found.append(Record.from_dict(json.loads(line)))
    return found


def _mark(names: Sequence[str]) -> str:
    return sha256_of(list(names))[:16]


def _line(record: Record) -> str:
    """Write a record as a line of JSON. Raises InputError for a result that JSON cannot hold."""
    line = record.to_dict() | ({MORE: record.more} if record.more else {})
    try:
        return json.dumps(line, allow_nan=False) + "\n"
    except (ValueError, TypeError) as error:
        raise InputError(f"{record.structure}: its result cannot be written as JSON: {error}") from None


def make_folder(folder: Path) -> None:
    """Make a folder, and folders above it. Raises FormatError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{folder}: this folder cannot be made: {os.strerror(error.errno or 0)}") from None


def read_journal(path: Path) -> JournalContent:
    """Read a journal, without an incomplete last line. Raises FormatError for another file."""
    try:
        head, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        of = json.loads(head)
        found = JournalContent(of[_KIND], of[_SETTINGS], of.get(SHARD, ""), of.get(_ITEMS, ()))
        for line in lines:
            record = Record.from_dict(json.loads(line))
            found.records.pop(record.structure, None)  # the last one of a name counts, where it stands
            found.records[record.structure] = record
            found.lines[record.structure] = line + "\n"
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{path}: is not a journal of records, or contains a line that cannot be read ({error}); start again"
        ) from None
    return found


def is_journal(path: Path) -> bool:
    """True if a file begins as a journal does."""
    with open(path, "rb") as stream:
        return stream.read(len(_KIND) + 5) == f'{{"{_KIND}": '.encode()


def merged(paths: Iterable[str | PathLike[str]]) -> JournalContent:
    """Merge the journals of all shards of one job, with records in the order of the items.

    Raises FormatError unless each shard of one job is given once, with all its records.
    """
    read = {path: read_journal(path) for path in map(Path, paths)}
    if not read:
        raise InputError("no journal was given; give those of all shards")
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
                f"{path}: {len(missing):,} of {len(wanted):,} structures are missing; run its shard again with `resume`"
            )
        whole.records.update((name, of.records[name]) for name in wanted)
    return whole


def _differing(one: str, other: str) -> str:
    """Name the settings in which two heads differ; "" if one is none."""
    try:
        heads = [json.loads(head) for head in (one, other)]
        first, second = (dict(head[_SETTINGS], **{"version of records": head["schema"]}) for head in heads)
    except (ValueError, KeyError, TypeError):
        return ""
    return ", ".join(sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)))
