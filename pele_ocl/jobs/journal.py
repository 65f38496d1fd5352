"""Records written down as they come, in a file that an interrupted job goes on with and that shards leave."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO

from ..errors import FormatError, InputError
from ..formats import appending, replacing
from .records import MORE, SCHEMA, Record
from .shards import Shard, require_all

SHARD = "shard"  # of a head: which one a file is of
_KIND, _SETTINGS, _ITEMS = "journal", "settings", "structures"


@dataclass(frozen=True)
class JournalContent:
    """The content of a journal.

    kind : of its job; settings : by which it is known again; shard : "" of a whole job
    items : names of the items of all shards, empty of a whole job
    records : by name, in the order in which they were written down
    lines : of each record, as it stands in the file
    """

    kind: str
    settings: Mapping[str, str]
    shard: str = ""
    items: Sequence[str] = ()
    records: dict[str, Record] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)

    def in_order(self) -> list[Record]:
        """The records of the items of all shards, in their order: one for each, even if it was given twice."""
        return [self.records[name] for name in self.items or self.records]


class Journal:
    """JSON lines: the settings, then each record. A line that was cut off counts as not written.

    The file takes the place of an earlier one when the first record is written, or by `begin`, just before a job
    replaces a file of its own: no journal that is left is of other files than those on disk.

    records : of an earlier run, by name, once `resume` was called
    """

    def __init__(
        self, path: Path | None, settings: Mapping[str, str], *, kind: str = "job", shard: Shard | None = None,
        items: Iterable[str] = (), waits: bool = False,
    ) -> None:  # fmt: skip
        """path : None for no file; shard : the part that this is, of the items of these names

        waits : whether records of failures are written with the first of a success, so that a run that can do nothing
            leaves an earlier file as it is
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
        """The records of an earlier run, which the file keeps; none where there is no file.

        counts : whether a record still holds; by default all do

        Raises FormatError for a journal of other settings or of another shard, and for another file.
        """
        if self.path is None or not self.path.exists():
            return {}
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
                self.records[name] = record
                self._kept += found.lines[name]
        return self.records

    def begin(self) -> None:
        """Put this run's file in place of an earlier one. Raises FormatError where it cannot be written."""
        if self.path is None or self._stream is not None:
            return
        make_folder(self.path.parent)
        with replacing(self.path) as temporary:
            temporary.write_text(self._head + self._kept, encoding="utf-8")
        self._stream = open(self.path, "ab", buffering=0)

    def add(self, record: Record) -> None:
        """Write a record down. Raises FormatError where that fails, as on a full disk."""
        if self.path is None:
            return
        line = record.to_dict() | ({MORE: record.more} if record.more else {})
        try:
            self._waiting += (json.dumps(line, allow_nan=False) + "\n").encode()
        except (ValueError, TypeError) as error:
            raise InputError(f"{record.structure}: its result cannot be written as JSON: {error}") from None
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


def make_folder(folder: Path) -> None:
    """Make a folder, where there is none, and those above it. Raises FormatError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{folder}: this folder cannot be made: {os.strerror(error.errno or 0)}") from None


def read_journal(path: Path) -> JournalContent:
    """Read a journal, less a line that was cut off. Raises FormatError for another file."""
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
            f"{path}: is no journal of records, or holds a line that cannot be read ({error}); start anew"
        ) from None
    return found


def is_journal(path: Path) -> bool:
    """Whether a file begins as a journal does."""
    with open(path, "rb") as stream:
        return stream.read(len(_KIND) + 5) == f'{{"{_KIND}": '.encode()


def merged(paths: Iterable[str | PathLike[str]]) -> JournalContent:
    """The content of the journals of all shards of one job, its records in the order of the items.

    Raises FormatError unless each shard of one job is there once, with all its records.
    """
    read = {path: read_journal(path) for path in map(Path, paths)}
    if not read:
        raise InputError("there is no journal to merge; give those of all shards")
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
                f"{path}: lacks {len(missing):,} of {len(wanted):,} structures; run its shard again with --resume"
            )
        whole.records.update((name, of.records[name]) for name in wanted)
    return whole


def _differing(one: str, other: str) -> str:
    """The names of the settings in which two heads differ; "" where one is none."""
    try:
        first, second = (dict(json.loads(head)[_SETTINGS]) for head in (one, other))
    except (ValueError, KeyError, TypeError):
        return ""
    return ", ".join(sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)))
