"""Text to the terminal: results on stdout, notes on stderr, and no control characters of a file's names on either."""

from __future__ import annotations

import os
import re
import sys

import click

# All but line feed and tabulator of the control characters; what turns the direction of text; halves of surrogate
# pairs, which stand for bytes of file names that are not UTF-8.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with every control character as JSON escapes it: `\\u001b`."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The printable text with its line ends escaped, too."""
    return printable(text).replace("\n", "\\u000a")


def say(text: str) -> None:
    """Print a result on stdout."""
    click.echo(printable(text))


def note(text: str) -> None:
    """Print one line on stderr."""
    click.echo(one_line(text), err=True)


def open_standard_streams() -> None:
    """Put the null device where stdin, stdout or stderr is closed, lest the next file that is opened takes its place.

    Characters that the terminal's encoding lacks are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # until the program ends
        getattr(sys, name).reconfigure(errors="backslashreplace")
