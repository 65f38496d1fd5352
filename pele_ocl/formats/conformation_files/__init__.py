"""Files of conformations of one molecule, written one after the other: PDB, mmCIF, HDF5 and AMBER's NetCDF.

All that depends on the molecule alone is written first, and nothing of it changes afterwards, so that a program that
is killed leaves a file that can be gone on with.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from numpy.typing import ArrayLike

from ...arguments import file_path, numbers
from ...atoms import Atoms, require_atoms
from ...errors import FormatError, InputError
from ..writing import replacing
from .content import Content
from .hdf5 import Hdf5Layout
from .layout import ConformationFile, Layout
from .mmcif import MmcifLayout
from .netcdf import NetcdfLayout
from .pdb import PdbLayout

__all__ = [
    "LAYOUTS",
    "ConformationFile",
    "Content",
    "layout_of",
    "require_suffix",
    "write_conformation",
    "write_conformations",
]

LAYOUTS: dict[str, Callable[[Content], Layout]] = {
    ".pdb": PdbLayout, ".cif": MmcifLayout, ".h5": Hdf5Layout, ".nc": NetcdfLayout,
}  # fmt: skip


def require_suffix(path: str | PathLike[str]) -> str:
    """The suffix of a file of conformations; raises FormatError unless it is a key of LAYOUTS."""
    suffix = Path(path).suffix.lower()
    if suffix not in LAYOUTS:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; structures are written as {', '.join(LAYOUTS)}")
    return suffix


def layout_of(path: str | PathLike[str], content: Content) -> Layout:
    """The layout of a ConformationFile for content.n conformations; nothing is written.

    Raises FormatError for a suffix that is not in LAYOUTS, and for names that the format cannot hold.
    """
    return LAYOUTS[require_suffix(path)](content)


def write_conformations(path: str | PathLike[str], atoms: Atoms, conformations: ArrayLike | None = None) -> None:
    """Write a molecule, by the suffix as PDB, mmCIF, HDF5 or AMBER's NetCDF.

    atoms : with labels, but for NetCDF, which has no names
    conformations : (n, 3) or (m, n, 3) A; by default the atoms' own positions

    Raises InputError for another shape, and FormatError for another suffix, for what the format cannot hold, and for a
    file that cannot be written.
    """
    require_atoms(atoms)
    target = file_path(path)
    given = atoms.positions if conformations is None else numbers("conformations", conformations)
    if given.ndim not in (2, 3) or given.shape[-2:] != atoms.positions.shape or not given.size:
        n = len(atoms)
        raise InputError(f"conformations have shape {given.shape}; ({n}, 3) is needed, or (m, {n}, 3), m at least 1")
    each = given.reshape(-1, len(atoms), 3)
    layout = layout_of(target, Content(atoms, len(each)))
    with replacing(target) as temporary, ConformationFile(temporary, layout, None) as file:
        for k, positions in enumerate(each, 1):
            file.append(k, positions)
        file.finish()


def write_conformation(path: str | PathLike[str], content: Content) -> None:
    """Write the one conformation that the content's atoms have.

    Raises FormatError as `layout_of` does, and for a file that cannot be written.
    """
    layout = layout_of(path, content)
    with replacing(path) as temporary, ConformationFile(temporary, layout, None) as file:
        file.append(1, content.atoms.positions)
        file.finish()
