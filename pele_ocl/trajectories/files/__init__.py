"""Trajectory formats, one per module, selected by suffix, or by the first bytes if the suffix is unknown."""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from ...common.errors import FormatError
from ...common.inputfile import reading, require_there, require_unpacked
from ...formats import is_structure
from ...formats.registry import COMPRESSED, open_plain
from .framefile import AtomChoice, FrameFile, Positions
from .memory import MemoryFile, held_frames


class LastOpenFile:
    """Keeps the last requested one of several files open."""

    def __init__(self, paths: Sequence[Path | MemoryFile], open_file: Callable[[Path | MemoryFile], FrameFile]) -> None:
        self._paths, self._open = paths, open_file
        self._opened: tuple[int, FrameFile] | None = None

    def opened(self, index: int) -> FrameFile:
        """Return the open file with this index. The previous one is closed."""
        if self._opened is None or self._opened[0] != index:
            self.close()
            self._opened = index, self._open(self._paths[index])
        return self._opened[1]

    def close(self) -> None:
        """Close the open file."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def __enter__(self) -> LastOpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = [
    "SUFFIXES",
    "AtomChoice",
    "FrameFile",
    "LastOpenFile",
    "MemoryFile",
    "Positions",
    "held_frames",
    "open_frames",
]


# Lower-case suffix -> module and function that opens the file. Suffixes of structures are also supported.
SUFFIXES: Mapping[str, str] = {
    ".nc": "netcdf:open_netcdf",
    ".ncdf": "netcdf:open_netcdf",
    ".dcd": "dcd:DcdFile",
    ".xtc": "xdr:open_xtc",
    ".trr": "xdr:open_trr",
    ".mdcrd": "mdcrd:MdcrdFile",
    ".h5": "hdf5:open_hdf5",
    ".xyz": "xyz:XyzFile",
    ".rst7": "restart:open_restart",
    ".inpcrd": "restart:open_restart",
    ".ncrst": "restart:open_restart",
}


# First bytes, their offset, and the suffix in SUFFIXES.
_MAGICS: tuple[tuple[bytes, int, str], ...] = (
    (b"CDF", 0, ".nc"), (b"\x89HDF", 0, ".nc"), (b"CORD", 4, ".dcd"), (b"\x00\x00\x07\xcb", 0, ".xtc"),
    (b"\x00\x00\x07\xc9", 0, ".trr"),
)  # fmt: skip
_MDCRD_LINE = re.compile(rb"[^\r\n]*\r?\n[\d .-]{24,80}\r?\n")  # a title, then numbers
_unpacked: dict[tuple[str, float], Path] = {}  # uncompressed copies of trajectories, by path and modification time
_folders: list[tempfile.TemporaryDirectory[str]] = []  # directories of these copies, kept until the process ends


def open_frames(path: Path, n_atoms: int | None = None) -> FrameFile:
    """Open a trajectory file. n_atoms : number of atoms, needed for .mdcrd, which does not contain it

    Raises FormatError if the file is missing, damaged, empty or has an unknown suffix.
    """
    with reading(path):
        if path.is_dir() and (held := {of.suffix for of in path.iterdir()} & SUFFIXES.keys()):
            raise FormatError(f"{path}: a folder; give files in it: {path / '*'}{min(held)}")
        if path.exists() or path.suffix.lower() in (*SUFFIXES, *COMPRESSED) or is_structure(path):
            require_there(path)  # for other paths, the suffix is reported first
        opened = _open(path, n_atoms)
    if not opened.n_frames or not opened.n_atoms:
        opened.close()
        raise FormatError(f"{path}: contains no complete frame; copy the file again")
    return opened


def _open(path: Path, n_atoms: int | None) -> FrameFile:
    if path.suffix.lower() in COMPRESSED and not is_structure(path):
        path = _plain(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES and not is_structure(path):
        suffix = _by_content(path)
    if suffix == ".mdcrd":
        if n_atoms is None:
            raise FormatError(f"{path}: does not state the number of atoms per frame; also give the structure")
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


def _by_content(path: Path) -> str:
    """Return the suffix for the format indicated by the first bytes; by default that of the path."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(512)
    except OSError:
        return path.suffix.lower()
    for magic, start, suffix in _MAGICS:
        if head[start : start + len(magic)] == magic:
            return suffix
    return ".mdcrd" if _MDCRD_LINE.match(head) else path.suffix.lower()


def _plain(path: Path) -> Path:
    """Decompress a file to a copy, kept until the process ends. Raises FormatError if the file is damaged."""
    key = str(path.resolve()), path.stat().st_mtime
    if key not in _unpacked:
        if not _folders:
            _folders.append(tempfile.TemporaryDirectory(prefix="pele-ocl-"))
        copy = Path(_folders[0].name) / f"{len(_unpacked)}-{path.stem}"
        try:
            with open_plain(path) as packed, open(copy, "wb") as file:
                while part := packed.read(1 << 20):
                    file.write(part)
                    require_unpacked(file.tell(), path.stat().st_size, path, "compressed")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise FormatError(f"{path}: the compressed data is damaged; fetch or copy the file again") from None
        _unpacked[key] = copy
    return _unpacked[key]
