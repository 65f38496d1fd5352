"""Paths given by users, and reasons why files cannot be read. Does not need NumPy."""

from __future__ import annotations

import errno
import os
from os import PathLike
from pathlib import Path

from .errors import FormatError, InputError, described

NAME_TOO_LONG = "the name is too long for the file system; give a shorter one"


def file_path(value: object, name: str = "path") -> Path:
    """Convert to a Path.

    Raises InputError unless it is a path or a string, FormatError for an invalid file name: with a null character, or
    too long for the file system.
    """
    written = os.fspath(value) if isinstance(value, str | PathLike) else None
    if not isinstance(written, str):
        raise InputError(f"{name} is {described(value)}; expected the path of a file")
    if "\0" in written:
        raise FormatError(f"{written!r}: not a valid file name")
    try:
        os.lstat(written)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FormatError(f"{written}: {NAME_TOO_LONG}") from None
    return Path(written)


def why_unreadable(error: OSError) -> str:
    """Return the reason why a file could not be opened or read, as part of a message after its name."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder; give a file in it"
    if isinstance(error, PermissionError):
        return "no permission to read the file"
    if error.errno == errno.ENAMETOOLONG:
        return NAME_TOO_LONG
    return f"cannot be read: {error.strerror or error}"
