"""Assignment of cores and devices to independent processes on one machine, by lock files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.errors import InputError

if TYPE_CHECKING:
    from filelock import FileLock

Cores = tuple[int, ...]


def core_groups(cores: Sequence[int], size: int) -> list[Cores]:
    """Divide cores into groups of `size` neighbours; remaining cores are added to the last group."""
    n = max(1, len(cores) // max(1, size))
    size = len(cores) // n
    return [tuple(cores[k * size : (k + 1) * size if k < n - 1 else len(cores)]) for k in range(n)]


def own_cores() -> Cores:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def claim(names: Sequence[str]) -> tuple[int, FileLock]:
    """Claim the place with the fewest processes on this machine. Returns its index, and the lock that reserves it.

    names : names of the places, the same in all processes

    The operating system releases the lock if the process dies. Raises InputError if other users have access to the
    folder of the locks.
    """
    from filelock import FileLock, Timeout

    folder = _folder_of_locks()
    for occupants in count():
        for k, name in enumerate(names):
            lock = FileLock(folder / f"{name}.{occupants}.lock")
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            return k, lock
    raise AssertionError("count() does not end")


def _folder_of_locks() -> Path:
    """Return the folder for the locks of this user, and create it if necessary.

    Its parent, the temporary folder, is writable for all users, so another user could have created this folder or a
    symbolic link. Therefore type, owner and permissions are checked.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir()) / f"pele-ocl-places-{'user' if user is None else user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise InputError(f"{folder}: cannot be created ({error.strerror}); remove it, or set TMPDIR") from None
    if not stat.S_ISDIR(found.st_mode) or (user is not None and (found.st_uid != user or found.st_mode & 0o077)):
        raise InputError(f"{folder}: is not a private folder of this user; remove it, or set TMPDIR to another folder")
    return folder


def stay_on(cores: Cores) -> None:
    """Pin all threads of this process to these cores, and limit the threads of OpenCL runtimes loaded later.

    PoCL counts all cores of the machine by default; Intel's runtime respects the affinity.
    """
    os.environ["POCL_CPU_MAX_CU_COUNT"] = os.environ["POCL_MAX_PTHREAD_COUNT"] = str(len(cores))
    if hasattr(os, "sched_setaffinity"):
        for thread in os.listdir("/proc/self/task"):
            try:
                os.sched_setaffinity(int(thread), cores)
            except ProcessLookupError:  # the thread has ended
                continue
