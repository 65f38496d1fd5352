"""Rule that no half-written file is ever left, and that no output is an input."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from .errors import FormatError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def replacing(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> Iterator[Path]:
    """A temporary file in the folder of `path` that takes its name when the block ends without an exception.

    On any exception, KeyboardInterrupt included, the temporary file is removed and the former file stays as it was. A
    symbolic link keeps its target path. The file there is replaced; the new one has its permissions, and its owner as
    far as the system allows.

    inputs : files that are read, which `path` must not be

    Raises FormatError if the folder is missing or read-only, or `path` is no regular file or an input.
    """
    refuse_target(path, inputs)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.stem[:64]}-{secrets.token_hex(6)}{target.suffix}")
    try:
        _create(temporary, target)
        yield temporary
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.errno in _FULL or str(temporary) in str(error)):
            raise _refusal(path, error) from error
        raise


@contextmanager
def appending(path: str | PathLike[str]) -> Iterator[None]:
    """A block that writes to an open file; raises FormatError where the system refuses it, on a full disk, say."""
    try:
        yield
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: str | PathLike[str], error: OSError) -> FormatError:
    reason = os.strerror(error.errno) if error.errno else "the file system refuses it"
    return FormatError(f"{path}: cannot be written: {reason}")


def _create(temporary: Path, target: Path) -> None:
    """Make the empty file, which nobody may read who may not read the file that it replaces."""
    try:
        there = target.stat()
    except FileNotFoundError:
        there = None
    number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if there is None else 0o600)
    try:
        if there is not None:
            for owner in ((there.st_uid, -1), (-1, there.st_gid)):
                with suppress(PermissionError):  # only root may give files away
                    os.chown(number, *owner)
            os.chmod(number, stat.S_IMODE(there.st_mode))
    finally:
        os.close(number)


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Tell if two paths lead to one file, by links or otherwise."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def refuse_overwriting(output: str | PathLike[str], source: str | PathLike[str]) -> None:
    """Raise FormatError if two paths lead to one file."""
    if same_file(output, source):
        raise FormatError(f"{output}: the same file as the input {source}; give the output another name")


def refuse_target(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Raise FormatError for a path that is one of the inputs or that nothing can be written to."""
    for source in inputs:
        refuse_overwriting(path, source)
    try:
        _refuse_place(Path(os.path.realpath(path)), path)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}") from error


def refuse_targets(paths: Sequence[str | PathLike[str]], inputs: Sequence[str | PathLike[str]] = ()) -> None:
    """Raise FormatError as refuse_target does for the first path it refuses, and for two paths to one file."""
    for number, path in enumerate(paths):
        refuse_target(path, inputs)
        for other in paths[:number]:
            if same_file(path, other):
                raise FormatError(f"{path}: the same file as the output {other}; give one of them another name")


def _refuse_place(target: Path, given: str | PathLike[str]) -> None:
    folder = target.parent
    if not folder.is_dir():
        raise FormatError(f"{given}: the folder {folder} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise FormatError(f"{given}: not a regular file; give the output another name")
    if target.exists() and not os.access(target, os.W_OK):
        raise FormatError(f"{given}: no permission to write to it; give the output another name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FormatError(f"{given}: no permission to write into the folder {folder}")
