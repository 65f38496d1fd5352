"""Files of conformations of one molecule, written one after the other: PDB, mmCIF, HDF5 and AMBER's NetCDF.

All that depends on the molecule alone is written first, and nothing of it changes afterwards, so that a program that
is killed leaves a file that can be gone on with.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from ...errors import FormatError
from ..writing import replacing
from .content import Content
from .hdf5 import Hdf5Layout
from .layout import ConformationFile, Layout
from .mmcif import MmcifLayout
from .netcdf import NetcdfLayout
from .pdb import PdbLayout

__all__ = ["LAYOUTS", "ConformationFile", "Content", "open_conformations", "require_suffix", "write_conformation"]

LAYOUTS: dict[str, Callable[[Content], Layout]] = {
    ".pdb": PdbLayout, ".cif": MmcifLayout, ".h5": Hdf5Layout, ".nc": NetcdfLayout,
}  # fmt: skip


def require_suffix(path: str | PathLike[str]) -> str:
    """The suffix of a file of conformations; raises FormatError unless it is a key of LAYOUTS."""
    suffix = Path(path).suffix.lower()
    if suffix not in LAYOUTS:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; structures are written as {', '.join(LAYOUTS)}")
    return suffix


def open_conformations(path: str | PathLike[str], content: Content, size: int | None = None) -> ConformationFile:
    """A file for content.n conformations, to be closed by leaving its `with` block.

    size : bytes at which a file that is there goes on, as `ConformationFile.size` had it; None for a new file

    Raises FormatError for names that the format cannot hold, and for files that cannot be written or gone on with.
    """
    return ConformationFile(Path(path), LAYOUTS[require_suffix(path)](content), size)


def write_conformation(path: str | PathLike[str], content: Content) -> None:
    """Write the one conformation that the content's atoms have. Raises FormatError as `open_conformations` does."""
    suffix = require_suffix(path)
    with replacing(path) as temporary, ConformationFile(temporary, LAYOUTS[suffix](content), None) as file:
        file.append(1, content.atoms.positions)
        file.finish()
