"""A file that is read once: its path, its bytes and their SHA-256."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .errors import FormatError
from .paths import file_path, why_unreadable

_MOST_BYTES = 2**32  # of a file that is read as a whole
LARGE_BYTES = 2**36  # the same of maps and lists of pairs, which may be larger
_SMALL, _MOST_RATIO = 2**27, 40  # bytes of unpacked data that may always be, and beyond them times the packed ones


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


class NoFile(InputFile):
    """In place of the file of atoms that no file brought: its name and its SHA-256 are empty."""

    sha256 = ""

    def __init__(self) -> None:
        super().__init__(Path("atoms"), b"")

    def __str__(self) -> str:
        return ""


def read_file(path: str | PathLike[str], most: int = _MOST_BYTES) -> InputFile:
    """Read a file; an InputFile is returned as it is.

    Raises FormatError for a file that is missing, not a regular file, larger than `most` bytes, or unreadable.
    """
    if isinstance(path, InputFile):
        return path
    file = file_path(path)
    with reading(file), open_regular(file) as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise FormatError(f"{file}: has more than {most >> 30} GiB, which is too much for such a file")
        return InputFile(file, stream.read())


def opened(path: str | PathLike[str]) -> BinaryIO:
    """Open a file to read its bytes. Raises FormatError if it cannot be opened or is not a regular file."""
    file = file_path(path)
    with reading(file):
        return open_regular(file)


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Context in which a file is read; errors of the system become a FormatError with one sentence.

    These are missing files, folders, files without permission, and names that the system does not accept.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise FormatError(f"{path}: {why_unreadable(error)}") from None
        if "null" in str(error):
            raise FormatError(f"{str(path)!r}: no file can have this name") from None
        raise


def require_there(path: str | PathLike[str]) -> None:
    """Raise FormatError for a file that is missing, a folder, no regular file, or that may not be read.

    It is for readers of other programs, whose errors do not tell these from damage.
    """
    opened(path).close()


def require_regular(path: str | PathLike[str]) -> None:
    """Raise FormatError if it is not a regular file: reading from a device, pipe or socket may never end.

    A folder, and a file that is missing, are left to whoever opens it.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FormatError(f"{path}: is a device, a pipe or a socket; copy what it gives to a file, and name that")


def open_regular(path: str | PathLike[str]) -> BinaryIO:
    """Open a regular file to read its bytes. Raises FormatError for other kinds of file, and OSError."""
    require_regular(path)
    return open(path, "rb")


def require_unpacked(n_bytes: int, packed: int, source: object, kind: str, *, is_map: bool = False) -> None:
    """Raise FormatError if data of a kind, such as "gzip", unpacks to more bytes than data of a molecule may have.

    Structures are compressed by a factor of 3 to 30. A factor of 1,000 is a decompression bomb: a few lines,
    repeated to fill memory. Zeros in text of maps may repeat, too; maps take less memory than atoms.
    """
    if n_bytes > max(_SMALL * (4 if is_map else 1), _MOST_RATIO * packed):
        raise FormatError(
            f"{source}: the {kind} data unpacks to more than {_MOST_RATIO} times its size, as no data of a molecule "
            "does; unpack it yourself if it is right"
        )


def npz_arrays(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file; pickled ones are refused.

    The file is read array by array, and may be of any size: checkpoints of many replicas have more than 4 GiB.

    Raises FormatError for what is missing, no regular file, or unpacks to far more than it has, and OSError,
    ValueError, EOFError, KeyError and zipfile.BadZipFile for what is damaged.
    """
    with io.BytesIO(path.data) if isinstance(path, InputFile) else opened(path) as stream:
        with zipfile.ZipFile(stream) as archive:
            n_bytes = sum(info.file_size for info in archive.infolist())
        packed = stream.seek(0, io.SEEK_END)
        require_unpacked(n_bytes, packed, path, ".npz")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
