"""Trajectory files by their suffixes; one module a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from ...errors import FormatError
from ...formats import is_structure
from .framefile import AtomChoice, FrameFile, Positions
from .memory import MemoryFile, held_frames
from .one_file import OneFile

__all__ = ["SUFFIXES", "AtomChoice", "FrameFile", "MemoryFile", "OneFile", "Positions", "held_frames", "open_frames"]

# Suffix in lower case -> module and function that opens such a file. Structures' suffixes are understood, too.
SUFFIXES: Mapping[str, str] = {
    ".nc": "netcdf:open_netcdf",
    ".ncdf": "netcdf:open_netcdf",
    ".dcd": "dcd:DcdFile",
    ".xtc": "xdr:open_xtc",
    ".trr": "xdr:open_trr",
    ".mdcrd": "mdcrd:MdcrdFile",
    ".h5": "hdf5:open_hdf5",
}


def open_frames(path: Path, n_atoms: int | None = None) -> FrameFile:
    """A trajectory file; n_atoms : of its frames where the format does not say, as .mdcrd does not.

    Raises FormatError where the file is missing, damaged, empty or of no known suffix.
    """
    try:
        opened = _open(path, n_atoms)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not opened.n_frames or not opened.n_atoms:
        opened.close()
        raise FormatError(f"{path}: holds no whole frame; copy the file again")
    return opened


def _open(path: Path, n_atoms: int | None) -> FrameFile:
    suffix = path.suffix.lower()
    if path.is_dir():
        raise FormatError(f"{path}: a folder; name a file in it")
    if suffix == ".mdcrd":
        if n_atoms is None:
            raise FormatError(f"{path}: does not say how many atoms a frame has; give the structure, too")
        from .mdcrd import MdcrdFile

        return MdcrdFile(path, n_atoms)
    if suffix in SUFFIXES:
        module, _, name = SUFFIXES[suffix].partition(":")
        opener: Callable[[Path], FrameFile] = getattr(import_module(f".{module}", __name__), name)
        return opener(path)
    if is_structure(path):
        from .models import open_models

        return open_models(path)
    known = ", ".join(SUFFIXES)
    raise FormatError(f"{path}: unknown suffix {suffix!r}; trajectories end in {known}, .pdb or .cif")
