"""Notes: sentences for the user that come while something is computed, in this process or by workers.

They go through `logging`, to the logger "pele_ocl": notes and warnings about results as WARNING, messages about the
progress as INFO, failures as ERROR. The command line shows them on stderr with its own words for keywords.
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
_listeners: list[list[Note]] = []  # of notes about results, the innermost last
_collectors: list[list[Note]] = []  # where notes go in place of the logger, the last one now


class Note(str):
    """A sentence for the user, which programs know by its code.

    text : the sentence; keywords of functions are in backquotes, as in errors
    kind : "note" or "warning" about a result, "message" about the progress, "error" of a part that failed
    code : word by which programs tell it from others (docs/records.md)
    fields : what it is about, by name

        >>> Note("7 of 22 atoms were taken", code="selected", n=7).code
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
        """Word with which the line of a terminal begins: "Note: "."""
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
    """List the notes and warnings about results issued within the block, for a report in JSON."""
    heard: list[Note] = []
    _listeners.append(heard)
    try:
        yield heard
    finally:
        _listeners[:] = [other for other in _listeners if other is not heard]


def with_notes(result: Mapping[str, Any], heard: Sequence[str]) -> dict[str, Any]:
    """Add issued sentences to the `notes` of a result, without duplicates, even if one was issued with its file."""
    own = list(result.get("notes", ()))
    told = [*own, *(each for each in heard if not any(each.endswith(f": {note}") for note in own))]
    codes = dict(zip(own, result.get("note_codes", ()), strict=False))
    return {**result, **as_json(dict.fromkeys(told), codes)} if told or "notes" in result else dict(result)


def as_json(told: Iterable[str], codes: Mapping[str, str] = {}) -> dict[str, list[str]]:  # never written to
    """Return the notes for a report in JSON: `notes`, the sentences, and `note_codes`, a word for each.

    codes : of sentences that are no Notes
    """
    every = list(told)
    return {
        "notes": every,
        "note_codes": [each.code if isinstance(each, Note) else codes.get(each, "note") for each in every],
    }


def note(text: str, heard: bool = True, *, kind: Kind | None = None, code: str = "note", **fields: Any) -> None:
    """Tell the user a sentence.

    text : a sentence, or a Note, which keeps its kind and code
    heard : False for what a report in JSON has elsewhere
    kind : by default what the text begins with, "Note: " say, and without that a message; code, fields : as in Note
    """
    tell(text if isinstance(text, Note) else _read(text, kind, code, fields), heard)


def tell(told: Note, heard: bool = True) -> None:
    """Tell a note: to who listens, and to who collects notes or else to the logger."""
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
    """Escape line ends and what cannot be printed; leave out the middle of a text that is longer than any sentence."""
    return shortened(printable(text).replace("\n", "\\n"))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Tell warnings of the library's own classes as notes, and show other warnings as Python does."""
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if category.__module__.startswith("pele_ocl."):
                tell(Note(str(message)))
            else:
                shown_by_python(message, category, *where, **more)

        warnings.showwarning = show
        yield
