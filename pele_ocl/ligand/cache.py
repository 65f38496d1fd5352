"""Topologies of small molecules that are kept on disk, a file each, by what they depend on."""

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
_FORMAT = "2"  # of what is kept; another one finds no older file


def folder() -> Path:
    """Folder of the topologies: PELE_OCL_LIGANDS, or a folder of the user's cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("pele-ocl") / "ligands"


def entry(*depends_on: str) -> Path:
    """File of a topology that depends on these texts alone."""
    key = "\n".join((_FORMAT, *depends_on))
    return folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.prmtop"


@contextmanager
def held(path: Path, source: str, limit: float | None = None) -> Iterator[None]:
    """A block that one process at a time is in, of those that make the same entry; the others wait.

    source : of the molecule, for messages; limit : seconds after which waiting is given up, as a ParameterError

    The lock is the operating system's, which a process that dies gives back. A folder that cannot be written to has
    none.
    """
    try:
        (path.parent / LOCKS).mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.parent / LOCKS / f"{path.stem}.lock")
        lock.acquire(timeout=-1 if limit is None else limit)
    except Timeout:
        raise ParameterError(
            f"{source}: was given up at the limit of time, while another process computes it"
        ) from None
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def keep(path: Path, topology: bytes) -> None:
    """Write a topology, whole or not at all; a folder that cannot be written to keeps nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as stream:
            stream.write(topology)
        os.replace(stream.name, path)
    except OSError:
        pass
