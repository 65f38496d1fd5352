"""Tuning file with the measurements of `pele-ocl tune`: read once, validated, and replaced as a whole."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.errors import FormatError, InputError

if TYPE_CHECKING:
    from ...opencl.device import Device
    from .findings import Entry

VARIABLE = "PELE_OCL_TUNING"  # a path, or "off"
LARGEST_FILE = 1 << 24  # bytes; a finding takes about 200
LOCK_SECONDS = 30.0  # other processes hold the lock only while they write one file


class TuningWarning(UserWarning):
    """The tuning file is invalid; built-in rules are used instead."""


def tuning_path() -> Path | None:
    """Return the path of the file, which may not exist; None if PELE_OCL_TUNING is off."""
    given = os.environ.get(VARIABLE, "").strip()
    if given.lower() == "off":
        return None
    import platformdirs

    return Path(given) if given else Path(platformdirs.user_cache_dir("pele-ocl")) / "tuning.json"


def require_path() -> Path:
    """Return the path of the file. Raises InputError if PELE_OCL_TUNING is off."""
    path = tuning_path()
    if path is None:
        raise InputError(f"{VARIABLE} is off, so no tuning file is used; unset it, or set it to a path")
    return path


def entries() -> tuple[Entry, ...]:
    """All stored entries, read once per process; empty if there is no file.

    Gives a TuningWarning, once, for a file that cannot be used.
    """
    path = tuning_path()
    return () if path is None else _read(path)


@lru_cache(maxsize=8)
def _read(path: Path) -> tuple[Entry, ...]:
    try:
        return _read_now(path)
    except ValueError as error:
        sentence = f"{path}: not a valid tuning file ({error}); built-in rules are used"
        warnings.warn(f"{sentence}, and `pele-ocl tune` rewrites it", TuningWarning, stacklevel=3)
        return ()


def _read_now(path: Path) -> tuple[Entry, ...]:
    """Read the current file; empty if there is none. Raises ValueError with the reason."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # reading might never end
            raise ValueError("it is not a regular file")
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE >> 20} MiB")
    try:
        from .findings import from_json

        return from_json(content.decode())
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def remember(entry: Entry) -> None:
    """Merge an entry into the current file; see findings.merged.

    Raises InputError or FormatError if the file cannot be written.
    """
    from .findings import merged

    with _locked() as path:
        _write(path, merged(_known(path), entry))


def forget(devices: Sequence[Device] = ()) -> bool:
    """Remove the findings for some devices, or the whole file. Returns whether there were any.

    Raises FormatError if the file cannot be written.
    """
    if not os.path.lexists(require_path()):
        return False
    with _locked() as path:
        known = _known(path) if devices else ()
        kept = [entry for entry in known if not any(entry.is_of(device) for device in devices)]
        if kept:
            _write(path, kept)
        else:
            path.unlink(missing_ok=True)
            _read.cache_clear()
    return not devices or len(kept) < len(known)


def prepare_folder() -> Path:
    """Create the folder of the file and return the path; called before anything is measured.

    Raises InputError or FormatError if the file could not be written.
    """
    path = require_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be created ({error.strerror}); set {VARIABLE} to a writable path"
        ) from error
    from ...common.writing import refuse_target

    refuse_target(path)
    return path


@contextmanager
def _locked() -> Iterator[Path]:
    """Yield the path of the file, locked against other processes until the block ends.

    The lock is an operating-system lock on a separate file, which is kept. It is released if the process dies.
    """
    from filelock import FileLock, Timeout

    path = prepare_folder()
    target = Path(os.path.realpath(path))
    lock = target.with_name(f"{target.name}.lock")
    try:
        with FileLock(lock, timeout=LOCK_SECONDS):
            yield path
    except Timeout:
        raise FormatError(f"{path}: another process has held {lock} for {LOCK_SECONDS:g} s; stop it first") from None
    except (OSError, NotImplementedError) as error:  # the latter where the file system has no locks
        raise FormatError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _known(path: Path) -> tuple[Entry, ...]:
    """Read the entries of the file; empty if it cannot be used, of which `entries` warns."""
    try:
        return _read_now(path)
    except ValueError:
        return ()


def _write(path: Path, known: Sequence[Entry]) -> None:
    from ...common.writing import replacing
    from .findings import FORMAT, as_json

    content = {"format": FORMAT, "devices": [as_json(entry) for entry in known]}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    _read.cache_clear()
