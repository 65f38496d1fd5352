"""Text to the terminal: results on stdout, notes on stderr, and no control characters of names on either."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from ..errors import printable


def one_line(text: str) -> str:
    """The printable text with its line ends escaped, too."""
    return printable(text).replace("\n", "\\n")


def say(text: str) -> None:
    """Print a result on stdout."""
    click.echo(printable(text))


_collectors: list[list[object]] = []  # where results go in place of stdout, the last one now


_INPUT = "pele_ocl.notes"  # of click's context: the notes about the structure that is computed


@contextmanager
def collected_json() -> Iterator[list[object]]:
    """Within the block the results that say_json is given go into a list, with notes about their own structure."""
    meta = click.get_current_context().meta
    before = meta.pop(_INPUT, [])
    _collectors.append([])
    try:
        yield _collectors[-1]
    finally:
        _collectors.pop()
        meta[_INPUT] = before


def remember(sentence: str) -> None:
    """Keep a note about a structure for the report in JSON."""
    kept = click.get_current_context().meta.setdefault(_INPUT, [])
    if sentence not in kept:
        kept.append(sentence)


def with_notes(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report in JSON with the notes about its structure before those that it has."""
    kept = click.get_current_context().meta.get(_INPUT, [])
    own = [sentence for sentence in report.get("notes", ()) if sentence not in kept]
    return {**report, "notes": [*kept, *own]}


def say_json(report: object) -> None:
    """Print a result on stdout as one JSON object."""
    if _collectors:
        _collectors[-1].append(report)
        return
    click.echo(json.dumps(report, allow_nan=False).replace("\x7f", "\\u007f"))


_notes: list[list[str]] = []  # where notes go in place of stderr, the last one now


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Within the block the lines that `note` is given go into a list."""
    _notes.append([])
    try:
        yield _notes[-1]
    finally:
        _notes.pop()


def note(text: str) -> None:
    """Print one line on stderr."""
    if _notes:
        _notes[-1].append(text)
        return
    click.echo(one_line(text), err=True)


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


@contextmanager
def compiling_said_once() -> Iterator[None]:
    """Within the block the first program that is compiled is told on stderr: it may take many seconds."""
    from ..opencl import notices

    before, told = notices.compiling, set[str]()

    def tell(device: str) -> None:
        if device not in told:
            told.add(device)
            note(f"Compiling kernels for {device}; they are kept for the next time")

    notices.compiling = tell
    try:
        yield
    finally:
        notices.compiling = before


def open_standard_streams() -> None:
    """Put the null device where stdin, stdout or stderr is closed, lest the next file that is opened takes its place.

    Characters that the terminal's encoding lacks are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # until the program ends
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
