"""A file that is read once: its path, its bytes and their SHA-256."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path

from .arguments import file_path
from .errors import FormatError


@dataclass(frozen=True, eq=False)
class InputFile(PathLike[str]):
    """Content of a file at the moment it was read.

    Every function that reads a file takes an InputFile in place of a path. It parses these bytes and does not open the
    file again. So `sha256` belongs to the bytes that were parsed, whatever happens to the file.

    path : as the user named it
    data : the bytes
    """

    path: Path
    data: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the bytes, as 64 hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def suffix(self) -> str:
        """Last suffix of the path, in lower case."""
        return self.path.suffix.lower()

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


def read_file(path: str | PathLike[str]) -> InputFile:
    """Read a file; an InputFile is returned as it is.

    Raises FormatError for a file that is missing, a folder, or cannot be read.
    """
    if isinstance(path, InputFile):
        return path
    file = file_path(path)
    try:
        with open(file, "rb") as stream:
            return InputFile(file, stream.read())
    except FileNotFoundError:
        raise FormatError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{file}: a folder; name a file in it") from None
    except PermissionError:
        raise FormatError(f"{file}: no permission to read the file") from None
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror or error}") from None
