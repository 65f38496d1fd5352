"""Outcomes of structures written down as they come, from which an interrupted run goes on and shards are merged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from ...errors import FormatError, InputError
from ...formats import appending, replacing
from ...inputfile import read_file
from .outcomes import Outcome

JOURNAL_SUFFIX = ".part"  # behind the name of the table
_HEAD = "outcomes of structures"


def journal_of(output: Path) -> Path:
    """The file in which outcomes stand until the table of this name has them all."""
    return output.with_name(f"{output.name}{JOURNAL_SUFFIX}")


class Journal:
    """Lines of JSON: the call, then each outcome; of a line that was cut off, nothing is kept.

    path : of the file; facts : of the call, by which an earlier file is known again
    """

    def __init__(self, path: Path, facts: Mapping[str, str]) -> None:
        self.path = path
        self._head = json.dumps({_HEAD: facts}) + "\n"
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def resume(self, paths: Sequence[Path], fingerprint: Callable[[Path], str] | None = None) -> list[Outcome]:
        """The outcomes that an earlier run left of the first of these structures, to be gone on with.

        fingerprint : by which a file is known again, in place of its SHA-256

        They end before the first whose file has changed since. Raises FormatError for a file of another call, or that
        is no such file.
        """
        if not self.path.exists():
            return []
        head, outcomes = read_journal(self.path)
        if json.dumps({_HEAD: head}) + "\n" != self._head or any(
            of.path != path for of, path in zip(outcomes, paths, strict=False)
        ):
            raise FormatError(f"{self.path}: was begun by another command; give that one, or leave out --resume")
        known_by = fingerprint or _sha256
        outcomes = list(takewhile(lambda of: of.sha256 == known_by(of.path), outcomes))
        self._begin()
        for outcome in outcomes:
            self.append(outcome)
        return outcomes

    def append(self, outcome: Outcome) -> None:
        """Write an outcome down. Raises FormatError where it cannot be written, as on a full disk."""
        if self._stream is None:
            self._begin()
        assert self._stream is not None
        line = {
            "structure": str(outcome.path), "sha256": outcome.sha256, "report": outcome.report,
            "error": None if outcome.error is None else str(outcome.error),
        }  # fmt: skip
        with appending(self.path):
            self._stream.write((json.dumps(line) + "\n").encode())
            self._stream.flush()

    def _begin(self) -> None:
        with replacing(self.path) as temporary:
            temporary.write_text(self._head)
        self._stream = open(self.path, "ab")


def _sha256(path: Path) -> str:
    try:
        return read_file(path).sha256
    except FormatError:
        return ""


def read_journal(path: Path) -> tuple[dict[str, str], list[Outcome]]:
    """The facts of a call, and the outcomes that were written down. Raises FormatError for another file."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
        head = json.loads(lines[0])[_HEAD]
        return head, [_outcome(json.loads(line)) for line in lines[1:]]
    except (ValueError, KeyError, TypeError, IndexError):
        raise FormatError(f"{path}: holds something else than {_HEAD}; start anew") from None


def _outcome(line: Mapping[str, object]) -> Outcome:
    error = None if line["error"] is None else InputError(line["error"])
    return Outcome(
        Path(str(line["structure"])), str(line["sha256"]), cast(dict[str, object] | None, line["report"]), error
    )
