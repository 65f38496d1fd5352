"""Shares of a machine that its processes take without asking each other: groups of cores, and devices."""

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
    """Divide cores into groups of `size` neighbours; cores that fill no group join the last."""
    n = max(1, len(cores) // max(1, size))
    size = len(cores) // n
    return [tuple(cores[k * size : (k + 1) * size if k < n - 1 else len(cores)]) for k in range(n)]


def own_cores() -> Cores:
    """List the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # which macOS and Windows lack
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def claim(names: Sequence[str]) -> tuple[int, FileLock]:
    """Take the place that the fewest processes of this machine have: its index, and the lock that holds it.

    names : of the places, the same in all processes

    The lock is the operating system's: a process that dies gives its place back. Raises InputError if the folder of
    the locks is not this user's alone.
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
    """Make the folder of this user's locks, or use the one that is there.

    Its name is known to all users of the machine, who may write to the folder that it is in: one of them may have made
    it, or a link of this name, to have files written elsewhere.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir()) / f"pele-ocl-places-{'user' if user is None else user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); remove it, or set TMPDIR") from None
    if not stat.S_ISDIR(found.st_mode) or (user is not None and (found.st_uid != user or found.st_mode & 0o077)):
        raise InputError(f"{folder}: is not a folder of this user alone; remove it, or set TMPDIR to another folder")
    return folder


def stay_on(cores: Cores) -> None:
    """Keep all threads of this process on these cores; OpenCL runtimes that it loads make no more threads.

    PoCL would count all cores of the machine; Intel's runtime follows the affinity.
    """
    os.environ["POCL_CPU_MAX_CU_COUNT"] = os.environ["POCL_MAX_PTHREAD_COUNT"] = str(len(cores))
    if hasattr(os, "sched_setaffinity"):
        for thread in os.listdir("/proc/self/task"):
            try:
                os.sched_setaffinity(int(thread), cores)
            except ProcessLookupError:  # it has just ended
                continue
