"""Terminal output: results on stdout and notes on stderr, with control characters escaped."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from ..common.errors import printable, worded
from ..common.notes import LOG, Note, heard_notes
from ..common.notes import note as note
from ..common.notes import one_line as one_line
from ..common.notes import warnings_as_notes as warnings_as_notes

Spelling = Callable[[str, str | None], str | None]
_spellings: list[Spelling] = []  # of the running commands, the innermost last
_heard: list[list[Note]] = []  # notes issued by these commands


class _ToStderr(logging.Handler):
    """Print notes to stderr, one line each, with keywords replaced by options."""

    def __init__(self, spell: Spelling) -> None:
        super().__init__()
        self._spell = spell

    def emit(self, record: logging.LogRecord) -> None:
        told = getattr(record, "note", None)
        text = f"{told.head}{told}" if isinstance(told, Note) else record.getMessage()
        print(one_line(worded(text, self._spell)), file=sys.stderr, flush=True)


@contextmanager
def notes_on_stderr(spell: Spelling) -> Iterator[None]:
    """Print notes of the library within the block to stderr, with keywords replaced by options."""
    handler, before = _ToStderr(spell), (LOG.level, LOG.propagate)
    _spellings.append(spell)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    try:
        with heard_notes() as told:
            _heard.append(told)
            yield
    finally:
        _heard.pop()
        LOG.removeHandler(handler)
        LOG.level, LOG.propagate = before
        _spellings.pop()


def heard() -> list[Note]:
    """Return the notes issued since the start of the command."""
    return _heard[-1] if _heard else []


def say(text: str) -> None:
    """Print a result to stdout, with keywords in errors and notes replaced by options."""
    click.echo(printable(worded(text, _spellings[-1]) if _spellings else text))


def say_json(report: object) -> None:
    """Print a result to stdout as one JSON object."""
    click.echo(json.dumps(report, allow_nan=False).replace("\x7f", "\\u007f"))


@contextmanager
def compiling_said_once() -> Iterator[None]:
    """Issue a note when kernels are first compiled within the block, because this may take many seconds."""
    from ..opencl import notices

    before, told = notices.compiling, set[str]()

    def tell(device: str) -> None:
        if device not in told:
            told.add(device)
            note(f"Compiling kernels for {device}; they are cached for later runs")

    notices.compiling = tell
    try:
        yield
    finally:
        notices.compiling = before


def open_standard_streams() -> None:
    """Replace closed standard streams by the null device, so that files opened later do not use their numbers.

    Characters not supported by the encoding of the terminal are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # uses the lowest free number, which is this one
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # until the program ends
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


_LOADED = time.perf_counter()
_start = _LOADED


def begin(start: float) -> None:
    """Set the start time of the command, on the clock of time.perf_counter."""
    global _start
    _start = start


def process_start() -> float:
    """Return the start time of this process or, if unknown, of this module, on the clock of time.perf_counter."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _LOADED
    start = time.perf_counter() - age
    return start if 0 <= _LOADED - start < 60 else _LOADED  # clocks may differ in containers


def elapsed() -> float:
    """Return the time since the start of the command, s, as set by Commands.main."""
    return time.perf_counter() - _start
