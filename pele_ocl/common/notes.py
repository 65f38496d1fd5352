"""Notes for the user, issued during computations in this process or by workers.

They are sent to the logger "pele_ocl": notes and warnings about results as WARNING, progress messages as INFO, and
failures as ERROR. The command line prints them to stderr, with keywords replaced by its options.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from .errors import printable, shortened

Kind = Literal["note", "warning", "message", "error"]

LOG = logging.getLogger("pele_ocl")
_LEVELS = {"note": logging.WARNING, "warning": logging.WARNING, "message": logging.INFO, "error": logging.ERROR}
_HEADS: dict[str, Kind] = {"Note: ": "note", "Warning: ": "warning", "Error: ": "error"}
_listeners: list[list[Note]] = []  # receive notes about results; the innermost is last
_collectors: list[list[Note]] = []  # the last one receives notes instead of the logger


class Note(str):
    """A sentence for the user, with a code for programs.

    text : the sentence; function keywords are in backquotes, as in errors
    kind : "note" or "warning" about a result, "message" about progress, "error" for a part that failed
    code : code for programs (docs/records.md)
    fields : data in the sentence, by name

        >>> Note("7 of 22 atoms were selected", code="selected", n=7).code
        'selected'
    """

    kind: Kind
    code: str
    fields: Mapping[str, Any]

    def __new__(cls, text: str, kind: Kind = "note", code: str = "note", **fields: Any) -> Note:
        self = super().__new__(cls, text)
        self.kind, self.code, self.fields = kind, code, fields
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (str(self), self.kind, self.code, dict(self.fields))

    @property
    def head(self) -> str:
        """Prefix of the line printed to a terminal, such as "Note: "."""
        return next((head for head, kind in _HEADS.items() if kind == self.kind), "")


def _unpickled(text: str, kind: Kind, code: str, fields: Mapping[str, Any]) -> Note:
    return Note(text, kind, code, **fields)


@contextmanager
def collected_notes() -> Iterator[list[Note]]:
    """Collect the notes issued within the block instead of logging them."""
    _collectors.append([])
    try:
        yield _collectors[-1]
    finally:
        _collectors.pop()


@contextmanager
def heard_notes() -> Iterator[list[Note]]:
    """Record the notes and warnings about results issued within the block, for JSON reports."""
    heard: list[Note] = []
    _listeners.append(heard)
    try:
        yield heard
    finally:
        _listeners[:] = [other for other in _listeners if other is not heard]


def with_notes(result: Mapping[str, Any], heard: Sequence[str]) -> dict[str, Any]:
    """Add issued sentences to the `notes` of a result, without duplicates, ignoring file names."""
    own = list(result.get("notes", ()))
    told = [*own, *(each for each in heard if not any(each.endswith(f": {note}") for note in own))]
    codes = dict(zip(own, result.get("note_codes", ()), strict=False))
    return {**result, **as_json(dict.fromkeys(told), codes)} if told or "notes" in result else dict(result)


def as_json(told: Iterable[str], codes: Mapping[str, str] = {}) -> dict[str, list[str]]:  # never modified
    """Return notes in JSON form: `notes`, the sentences, and `note_codes`, a code for each.

    codes : codes of sentences that are plain strings
    """
    every = list(told)
    return {
        "notes": every,
        "note_codes": [each.code if isinstance(each, Note) else codes.get(each, "note") for each in every],
    }


def note(text: str, heard: bool = True, *, kind: Kind | None = None, code: str = "note", **fields: Any) -> None:
    """Issue a note.

    text : a sentence, or a Note, which keeps its kind and code
    heard : False for notes whose content is elsewhere in a JSON report
    kind : by default determined by the beginning of the text, such as "Note: ", otherwise "message"
    code, fields : as in Note
    """
    tell(text if isinstance(text, Note) else _read(text, kind, code, fields), heard)


def tell(told: Note, heard: bool = True) -> None:
    """Send a note to listeners, and to the current collector or the logger."""
    if heard and told.kind in ("note", "warning"):
        for listener in _listeners:
            listener.append(told)
    if _collectors:
        _collectors[-1].append(told)
        return
    LOG.log(_LEVELS[told.kind], "%s", one_line(told), extra={"note": told})


def _read(text: str, kind: Kind | None, code: str, fields: Mapping[str, Any]) -> Note:
    head = next((head for head in _HEADS if text.startswith(head)), "")
    return Note(text.removeprefix(head), kind or (_HEADS[head] if head else "message"), code, **fields)


def one_line(text: str) -> str:
    """Escape line ends and unprintable characters, and shorten excessively long text."""
    return shortened(printable(text).replace("\n", "\\n"))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Issue warnings of this package as notes within the block; other warnings are not changed."""
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if category.__module__.startswith("pele_ocl."):
                tell(Note(str(message)))
            else:
                shown_by_python(message, category, *where, **more)

        warnings.showwarning = show
        yield
