"""Atomic writing of files, and protection of input files from being overwritten."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from os import PathLike
from pathlib import Path

from .errors import FormatError
from .paths import NAME_TOO_LONG, file_path

# Names of temporary files: random part, machine and process, and the suffix, which determines the format.
_TEMPORARY = re.compile(r"\..*-[0-9a-f]{12}\.(?P<machine>[0-9a-f]{8})-(?P<process>\d+)\.pele-ocl(\..*)?")
_tidied = set[str]()  # folders already searched for temporary files of dead processes
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def replacing(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> Iterator[Path]:
    """Context manager for a temporary file that replaces `path` when the block ends without an exception.

    On any exception, including KeyboardInterrupt, the temporary file is removed and an existing file is unchanged.
    Symbolic links are followed. The new file has the permissions and, if possible, the owner of the old one. Temporary
    files of killed processes of this machine in the folder are removed.

    inputs : files that must not be overwritten

    Raises FormatError if the folder is missing or read-only, or `path` is not a regular file or is an input.
    """
    refuse_target(path, inputs)
    target = Path(os.path.realpath(path))
    _tidy(target.parent)
    mark = f"{secrets.token_hex(6)}.{_machine()}-{os.getpid()}.pele-ocl"
    temporary = target.with_name(f".{target.stem[:64]}-{mark}{target.suffix}")
    try:
        _create(temporary, target)
        yield temporary
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.errno in _FULL or str(temporary) in str(error)):
            raise _refusal(path, error) from error
        raise


@cache
def _machine() -> str:
    """Return an identifier of this machine or container, within which process numbers are unique."""
    return hashlib.sha256(" ".join(_identity()).encode()).hexdigest()[:8]


def _identity() -> tuple[str, ...]:
    """Return the data that identify a set of processes with unique process numbers.

    Host names are not sufficient, because machines or containers with a shared folder may have the same name. Therefore
    the boot identifier of the kernel or the address of the network card is included.
    """
    name = os.uname().nodename if hasattr(os, "uname") else ""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        kernel = f"{uuid.getnode():x}"
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return name, kernel, processes


def _tidy(folder: Path) -> None:
    """Remove temporary files of dead processes of this machine, only once per folder, because this takes time."""
    if os.name != "posix" or str(folder) in _tidied:
        return
    _tidied.add(str(folder))
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            found = _TEMPORARY.fullmatch(entry.name)
            if found is not None and found["machine"] == _machine() and not _lives(int(found["process"])):
                with suppress(OSError):
                    os.unlink(entry.path)


def _lives(process: int) -> bool:
    """Return whether a process of this machine is still running."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # process of another user
        return True
    return True


@contextmanager
def appending(path: str | PathLike[str]) -> Iterator[None]:
    """Context manager for writing to an open file. Raises FormatError if this fails, e.g. if the disk is full."""
    try:
        yield
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: str | PathLike[str], error: OSError) -> FormatError:
    if error.errno == errno.ENAMETOOLONG:
        return FormatError(f"{path}: {NAME_TOO_LONG}")
    reason = os.strerror(error.errno) if error.errno else "the file system does not allow it"
    return FormatError(f"{path}: cannot be written: {reason}")


def _create(temporary: Path, target: Path) -> None:
    """Create the empty temporary file, with permissions no wider than those of the file to be replaced."""
    try:
        there = target.stat()
    except FileNotFoundError:
        there = None
    number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if there is None else 0o600)
    try:
        if there is not None:
            for owner in ((there.st_uid, -1), (-1, there.st_gid)):
                with suppress(PermissionError):  # only root may change the owner
                    os.chown(number, *owner)
            os.chmod(number, stat.S_IMODE(there.st_mode))
    finally:
        os.close(number)


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Return whether two paths refer to the same file, also through links."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one does not exist
        return os.path.realpath(one) == os.path.realpath(other)


def refuse_overwriting(output: str | PathLike[str], source: str | PathLike[str]) -> None:
    """Raise FormatError if two paths refer to the same file."""
    if same_file(output, source):
        raise FormatError(f"{output}: the same file as the input {source}; give the output a different name")


def refuse_target(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Raise FormatError if a path is one of the inputs or cannot be written."""
    file_path(path)
    for source in inputs:
        refuse_overwriting(path, source)
    try:
        _refuse_place(Path(os.path.realpath(path)), path)
    except OSError as error:
        raise _refusal(path, error) from error


def refuse_targets(paths: Sequence[str | PathLike[str]], inputs: Sequence[str | PathLike[str]] = ()) -> None:
    """Raise FormatError as in refuse_target for the first invalid path, and for two paths to the same file."""
    for number, path in enumerate(paths):
        refuse_target(path, inputs)
        for other in paths[:number]:
            if same_file(path, other):
                raise FormatError(f"{path}: the same file as the output {other}; give one of them a different name")


def _refuse_place(target: Path, given: str | PathLike[str]) -> None:
    folder = target.parent
    if not folder.is_dir():
        raise FormatError(f"{given}: the folder {folder} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise FormatError(f"{given}: not a regular file; give the output a different name")
    if target.exists() and not os.access(target, os.W_OK):
        raise FormatError(f"{given}: no permission to write to it; give the output a different name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FormatError(f"{given}: no permission to write into the folder {folder}")
