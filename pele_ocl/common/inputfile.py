"""A file that is read once: its path, its bytes and their SHA-256."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .arguments import file_path
from .errors import FormatError

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


def read_file(path: str | PathLike[str], most: int = _MOST_BYTES) -> InputFile:
    """Read a file; an InputFile is returned as it is.

    Raises FormatError for a file that is missing, no regular file, larger than `most` bytes, or that cannot be read.
    """
    if isinstance(path, InputFile):
        return path
    file = file_path(path)
    try:
        with open_regular(file) as stream:
            if os.fstat(stream.fileno()).st_size > most:
                raise FormatError(f"{file}: has more than {most >> 30} GiB, which is too much for such a file")
            return InputFile(file, stream.read())
    except FileNotFoundError:
        raise FormatError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{file}: a folder; name a file in it") from None
    except PermissionError:
        raise FormatError(f"{file}: no permission to read the file") from None
    except OSError as error:
        raise FormatError(f"{file}: cannot be read: {error.strerror or error}") from None


def require_regular(path: str | PathLike[str]) -> None:
    """Raise FormatError for what is no regular file: a device may have no end, a pipe or a socket no beginning.

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

    Structures are packed to a third to a thirtieth; a thousand times as much is made of a few lines that repeat, to
    fill memory. Text of maps may repeat, too, where they are zero, and takes less memory than atoms.
    """
    if n_bytes > max(_SMALL * (4 if is_map else 1), _MOST_RATIO * packed):
        raise FormatError(
            f"{source}: the {kind} data unpacks to more than {_MOST_RATIO} times its size, as no data of a molecule "
            "does; unpack it yourself if it is right"
        )


def npz_arrays(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file; pickled ones are refused.

    Raises FormatError for what is no regular file, or unpacks to far more than it has, and OSError, ValueError,
    EOFError, KeyError and zipfile.BadZipFile for what is damaged.
    """
    file = read_file(path)
    with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
        n_bytes = sum(info.file_size for info in archive.infolist())
    require_unpacked(n_bytes, len(file.data), file, ".npz")
    with np.load(io.BytesIO(file.data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
