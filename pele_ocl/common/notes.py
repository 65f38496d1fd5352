"""Sentences for the user that are told while records are computed, here or by workers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .errors import printable, shortened

_KINDS = ("Note", "Warning")  # how lines begin that say something of the result
_listeners: list[list[str]] = []  # of notes that are told, the innermost last
_collectors: list[list[str]] = []  # where notes go in place of stderr, the last one now


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect the lines that `note` is given within the block."""
    _collectors.append([])
    try:
        yield _collectors[-1]
    finally:
        _collectors.pop()


@contextmanager
def heard_notes() -> Iterator[list[str]]:
    """List the sentences of notes and warnings that `note` is given within the block, for a report in JSON."""
    heard: list[str] = []
    _listeners.append(heard)
    try:
        yield heard
    finally:
        _listeners[:] = [other for other in _listeners if other is not heard]


def with_notes(result: Mapping[str, Any], heard: Sequence[str]) -> dict[str, Any]:
    """Add sentences that were told to the `notes` of a result, each once, also one that was told with its file."""
    own = list(result.get("notes", ()))
    told = [*own, *(each for each in heard if not any(each.endswith(f": {note}") for note in own))]
    return {**result, "notes": list(dict.fromkeys(told))} if told else dict(result)


def note(text: str, heard: bool = True) -> None:
    """Print one line on stderr; heard : False for what a report in JSON has elsewhere"""
    kind, _, sentence = text.partition(": ")
    if heard and kind in _KINDS:
        for listener in _listeners:
            listener.append(sentence)
    if _collectors:
        _collectors[-1].append(text)
        return
    print(one_line(text), file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Escape line ends and what cannot be printed; leave out the middle of a text that is longer than any sentence."""
    return shortened(printable(text).replace("\n", "\\n"))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings of the library's own classes as one line on stderr, and other warnings as Python does."""
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if category.__module__.startswith("pele_ocl."):
                note(f"Note: {message}")
            else:
                shown_by_python(message, category, *where, **more)

        warnings.showwarning = show
        yield
