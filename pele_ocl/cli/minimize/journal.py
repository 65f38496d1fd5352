"""The results of a run, structure by structure, in a file that an interrupted run goes on with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ...errors import FormatError, PeleError
from ...formats import appending, replacing
from ...inputfile import read_file
from .targets import make_folder

Row = dict[str, Any]  # what --json prints of a structure
_OWN = ("size", "sha256", "written")  # of a line of the journal, not of the report


class Journal:
    """JSON lines: the settings, then a line for each structure, written once its file is.

    The file begins just before the first structure's does, so a call that can do none leaves an earlier file as it is,
    and none that is left is of other structures than those on disk.

    rows : of the structures that an earlier run finished, by name; size : of the file of all conformations by then
    """

    def __init__(
        self, path: Path | None, settings: Mapping[str, str], resume: bool, shard: Mapping[str, object] | None = None
    ) -> None:
        """path : None for no file; shard : which one this is, and the names of the structures of all

        Raises FormatError where a run of other settings, or of another shard, left the file.
        """
        self._path, self._is_shard, self.rows = path, shard is not None, dict[str, Row]()
        self.size: int | None = None
        self._head = json.dumps({"settings": settings, **(shard or {})}, ensure_ascii=False, sort_keys=True) + "\n"
        self._kept = self._read(path) if resume and path is not None and path.exists() else ""
        self._waiting = b""  # lines of structures that failed before any was done
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Shards are merged even where all structures of one failed.
        if error is None and self._is_shard and self._waiting:
            self._write()
        if self._stream is not None:
            self._stream.close()

    def add(self, row: Row, **more: object) -> None:
        """Write down a structure that is done, or failed."""
        if self._path is None:
            return
        self._waiting += (json.dumps({**row, **more}, ensure_ascii=False) + "\n").encode()
        if self._stream is not None or "error" not in row:
            self._write()

    def begin(self) -> None:
        """Put this run's file in place of an earlier one: called before a structure is written, whose row that lacks.

        Raises FormatError where it cannot be written.
        """
        if self._path is None or self._stream is not None:
            return
        make_folder(self._path.parent)
        with replacing(self._path) as temporary:
            temporary.write_text(self._head + self._kept, encoding="utf-8")
        self._stream = open(self._path, "ab", buffering=0)

    def _write(self) -> None:
        """Write the lines that wait, into a new file where none was begun."""
        self.begin()
        assert self._path is not None
        assert self._stream is not None
        with appending(self._path):
            self._stream.write(self._waiting)
        self._waiting = b""

    def earlier(self, path: Path, target: Path) -> Row | None:
        """The row of a structure that an earlier run finished, None where there is none.

        It counts for the same bytes of the structure, and for the file that it left: workers replace files before the
        journal knows, so after a kill one may be of a run that noted nothing down.
        """
        row = self.rows.get(str(path))
        if row is None or "error" in row:
            return None
        try:
            found = [read_file(of).sha256 for of in (path, target)]
        except PeleError:
            return None
        return self.reported(row) if found == [row.get("sha256"), row.get("written")] else None

    @staticmethod
    def reported(row: Row) -> Row:
        """A row as it is reported."""
        return {key: value for key, value in row.items() if key not in _OWN}

    def require(self, rows: Sequence[Row], names: Sequence[str], sha256: str) -> None:
        """Raise FormatError unless the rows of an earlier run are those of the first of these conformations."""
        others = [
            row for row, name in zip(rows, names, strict=False) if (row["name"], row.get("sha256")) != (name, sha256)
        ]
        if others or len(rows) > len(names):
            raise FormatError(f"{self._path}: is of other conformations; start anew, without --resume")

    def _read(self, path: Path) -> str:
        """Learn of the structures that are done; their lines, without one that was cut off."""
        text = path.read_text(encoding="utf-8", errors="replace")
        if not text.startswith(self._head):
            others = _differing(text.partition("\n")[0], self._head)
            which = f" ({others})" if others else ""
            raise FormatError(
                f"{path}: was made with other settings{which}; resume with the same, or name another output"
            )
        lines = text[len(self._head) :].splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n")]
        try:
            for line in kept:
                row = json.loads(line)
                self.rows[row["name"]] = row
                self.size = row.get("size", self.size)
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path}: holds a line that cannot be read ({error}); start anew") from None
        return "".join(kept)


def _differing(one: str, other: str) -> str:
    """The names of the settings in which two heads differ; "" where one is none."""
    try:
        first, second = (dict(json.loads(head)["settings"]) for head in (one, other))
    except (ValueError, KeyError, TypeError):
        return ""
    return ", ".join(sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)))


def is_journal(path: Path) -> bool:
    """Whether a file is the journal of a shard."""
    if path.suffix != ".jsonl":
        return False
    with open(path, encoding="utf-8", errors="replace") as file:
        line = file.readline()
    return line.startswith('{"settings": ') and '"structures": ' in line


def read_shard(path: Path) -> tuple[dict[str, Any], dict[str, Row]]:
    """The head of a shard's journal, and the rows of its structures by name. Raises FormatError for another file."""
    try:
        head, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        rows = [json.loads(line) for line in lines]
        return json.loads(head), {row["name"]: Journal.reported(row) for row in rows}
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: is no journal of minimised structures ({error}); start anew") from None
