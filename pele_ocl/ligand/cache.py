"""Disk cache of small-molecule topologies, keyed by everything that they depend on."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ..common.errors import ParameterError

VARIABLE = "PELE_OCL_LIGANDS"
LOCKS = ".locks"  # folder of the locks
_FORMAT = "2"  # version of the cache; changing it invalidates older files


def folder() -> Path:
    """Return the folder of the cache: PELE_OCL_LIGANDS, or a subfolder of the user's cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("pele-ocl") / "ligands"


def entry(*depends_on: str) -> Path:
    """Return the file of a topology that depends only on these texts."""
    key = "\n".join((_FORMAT, *depends_on))
    return folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.prmtop"


@contextmanager
def held(path: Path, source: str, limit: float | None = None) -> Iterator[None]:
    """Lock an entry, so that only one process at a time computes it.

    source : source of the molecule, for messages; limit : time limit, s, after which a ParameterError is raised

    The operating system releases the lock if a process crashes. There is no lock if the folder is not writable.
    """
    try:
        (path.parent / LOCKS).mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.parent / LOCKS / f"{path.stem}.lock")
        lock.acquire(timeout=-1 if limit is None else limit)
    except Timeout:
        raise ParameterError(f"{source}: was stopped at the time limit while another process computed it") from None
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def keep(path: Path, topology: bytes) -> None:
    """Write a topology atomically; nothing is stored if the folder is not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as stream:
            stream.write(topology)
        os.replace(stream.name, path)
    except OSError:
        pass
