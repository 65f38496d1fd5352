"""Input files, which are read only once: path, content and SHA-256."""

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

_MOST_BYTES = 2**32  # largest file that is read as a whole
LARGE_BYTES = 2**36  # the same for maps and pair lists
_SMALL, _MOST_RATIO = 2**27, 40  # bytes of unpacked data always allowed; above, the largest compression ratio


@dataclass(frozen=True, eq=False)
class InputFile(PathLike[str]):
    """Content of a file at the time it was read.

    Every function that reads a file also accepts an InputFile instead of a path. It then parses these bytes and does
    not open the file again. Therefore `sha256` is always that of the parsed bytes, even if the file changes.

    path : path as given by the user
    data : content as bytes
    """

    path: Path
    data: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the bytes, as 64 hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def suffix(self) -> str:
        """Last suffix of the path in lower case."""
        return self.path.suffix.lower()

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


class NoFile(InputFile):
    """Placeholder for Atoms without a file, with an empty name and SHA-256."""

    sha256 = ""

    def __init__(self) -> None:
        super().__init__(Path("atoms"), b"")

    def __str__(self) -> str:
        return ""


def read_file(path: str | PathLike[str], most: int = _MOST_BYTES) -> InputFile:
    """Read a file; an InputFile is returned unchanged.

    Raises FormatError if the file is missing, not a regular file, larger than `most` bytes, or unreadable.
    """
    if isinstance(path, InputFile):
        return path
    file = file_path(path)
    with reading(file), open_regular(file) as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise FormatError(f"{file}: has more than {most >> 30} GiB, the limit for such files")
        return InputFile(file, stream.read())


def opened(path: str | PathLike[str]) -> BinaryIO:
    """Open a file to read its bytes. Raises FormatError if it cannot be opened or is not a regular file."""
    file = file_path(path)
    with reading(file):
        return open_regular(file)


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Context manager that converts system errors during reading to FormatError.

    It covers missing files, folders, missing permissions, and invalid file names.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise FormatError(f"{path}: {why_unreadable(error)}") from None
        if "\0" in str(path):
            raise FormatError(f"{str(path)!r}: not a valid file name") from None
        raise


def require_there(path: str | PathLike[str]) -> None:
    """Raise FormatError if a file is missing, a folder, not a regular file, or not readable.

    It is used before calling readers of other libraries, whose errors do not distinguish these cases from damage.
    """
    opened(path).close()


def require_regular(path: str | PathLike[str]) -> None:
    """Raise FormatError for devices, pipes and sockets, because reading from these may never end.

    Folders and missing files are accepted; they cause an error when they are opened.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FormatError(f"{path}: is a device, a pipe or a socket; copy its contents to a file, and give that file")


def open_regular(path: str | PathLike[str]) -> BinaryIO:
    """Open a regular file for reading in binary mode. Raises FormatError for other kinds of files, and OSError."""
    require_regular(path)
    return open(path, "rb")


def require_unpacked(n_bytes: int, packed: int, source: object, kind: str, *, is_map: bool = False) -> None:
    """Raise FormatError if compressed data, such as "gzip", unpack to an unreasonable number of bytes.

    Structures are compressed by a factor of 3 to 30; a factor of 1,000 indicates a decompression bomb. Higher ratios
    are allowed for maps, which may contain many zeros and need less memory than atoms.
    """
    if n_bytes > max(_SMALL * (4 if is_map else 1), _MOST_RATIO * packed):
        raise FormatError(
            f"{source}: the {kind} data unpacks to more than {_MOST_RATIO} times its size, which is unusual for "
            "molecular data; unpack it yourself if it is correct"
        )


def npz_arrays(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file, without pickled objects.

    There is no limit on the size, because checkpoints of many replicas may exceed 4 GiB.

    Raises FormatError if the file is missing, not a regular file, or has an excessive compression ratio, and OSError,
    ValueError, EOFError, KeyError or zipfile.BadZipFile if it is damaged.
    """
    with io.BytesIO(path.data) if isinstance(path, InputFile) else opened(path) as stream:
        with zipfile.ZipFile(stream) as archive:
            n_bytes = sum(info.file_size for info in archive.infolist())
        packed = stream.seek(0, io.SEEK_END)
        require_unpacked(n_bytes, packed, path, ".npz")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
