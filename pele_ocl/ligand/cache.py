"""Topologies of small molecules that are kept on disk, a file each, by what they depend on."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

VARIABLE = "PELE_OCL_LIGANDS"
_FORMAT = "1"  # of what is kept; another one finds no older file


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


def keep(path: Path, topology: bytes) -> None:
    """Write a topology, whole or not at all; a folder that cannot be written to keeps nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as stream:
            stream.write(topology)
        os.replace(stream.name, path)
    except OSError:
        pass
