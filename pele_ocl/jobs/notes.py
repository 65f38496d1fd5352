"""Sentences for the user that are told while records are computed, here or by workers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..common.errors import printable, shortened

_collectors: list[list[str]] = []  # where notes go in place of stderr, the last one now


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect the lines that `note` is given within the block."""
    _collectors.append([])
    try:
        yield _collectors[-1]
    finally:
        _collectors.pop()


def note(text: str) -> None:
    """Print one line on stderr."""
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
