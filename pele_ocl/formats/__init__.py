"""Molecular structure files in, result files out, map files both ways; one module a format."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from ..atoms import Structure
from ..errors import FormatError
from .conformations import read_conformations
from .maps import read_map, require_map_suffix, write_map
from .mmcif import read_mmcif
from .models import model_numbers
from .pdb import read_pdb
from .points import POINT_SUFFIXES, read_points
from .pqr import read_pqr
from .writing import (
    JsonText,
    check_target,
    refuse_overwriting,
    refuse_target,
    replacing,
    require_table_suffix,
    same_file,
    write_table,
)

__all__ = [
    "POINT_SUFFIXES",
    "STRUCTURE_READERS",
    "JsonText",
    "check_target",
    "is_pqr",
    "model_numbers",
    "read_conformations",
    "read_map",
    "read_points",
    "read_pqr",
    "read_structure",
    "refuse_overwriting",
    "refuse_target",
    "replacing",
    "require_map_suffix",
    "require_table_suffix",
    "same_file",
    "write_map",
    "write_table",
]

STRUCTURE_READERS: dict[str, Callable[[Path, int | None], Structure]] = {
    ".pdb": read_pdb,
    ".ent": read_pdb,
    ".cif": read_mmcif,
    ".mmcif": read_mmcif,
}


def read_structure(path: str | PathLike[str], model: int | None = None) -> Structure:
    """The atoms of one model of a structure file, plain or gzip; the suffix says which format.

    path : file ending in a key of STRUCTURE_READERS, `.gz` behind it allowed
    model : number of the model as the file has it; the first if None

    Raises FormatError, naming file and line, for whatever cannot be read.
    """
    file = Path(path)
    suffix = _suffix(file)
    if file.is_dir():
        raise FormatError(f"{file}: a folder; name a file in it")
    if suffix not in STRUCTURE_READERS:
        known = ", ".join([*STRUCTURE_READERS, ".pqr"])
        raise FormatError(f"{file}: unknown suffix {suffix!r}; molecules end in {known}, or these with .gz")
    return STRUCTURE_READERS[suffix](file, model)


def is_pqr(path: str | PathLike[str]) -> bool:
    """Whether a file is one for read_pqr, by its suffix."""
    return _suffix(Path(path)) == ".pqr"


def _suffix(path: Path) -> str:
    """The suffix in lower case, before `.gz` if that is the last."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
