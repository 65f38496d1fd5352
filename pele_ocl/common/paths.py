"""Paths that a user gives, and why a file cannot be read; without NumPy."""

from __future__ import annotations

import errno
import os
from os import PathLike
from pathlib import Path

from .errors import FormatError, InputError, described

NAME_TOO_LONG = "the name is too long for the file system; give a shorter one"


def file_path(value: object, name: str = "path") -> Path:
    """Return the value as a Path.

    Raises InputError unless it is a path or a text, FormatError for a name that no file can have: one with a null
    character, or longer than the file system allows.
    """
    written = os.fspath(value) if isinstance(value, str | PathLike) else None
    if not isinstance(written, str):
        raise InputError(f"{name} is {described(value)}; expected the path of a file")
    if "\0" in written:
        raise FormatError(f"{written!r}: no file can have this name")
    try:
        os.lstat(written)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FormatError(f"{written}: {NAME_TOO_LONG}") from None
    return Path(written)


def why_unreadable(error: OSError) -> str:
    """Say why a file could not be opened or read, as part of a sentence that begins with its name."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder; name a file in it"
    if isinstance(error, PermissionError):
        return "no permission to read the file"
    if error.errno == errno.ENAMETOOLONG:
        return NAME_TOO_LONG
    return f"cannot be read: {error.strerror or error}"
