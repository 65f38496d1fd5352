"""Molecular structure files in, result files out, map files both ways; one module a format."""

from __future__ import annotations

from os import PathLike

from ..atoms import Atoms, Structure
from ..errors import FormatError
from ..inputfile import read_file
from .conformations import model_numbers, read_conformations
from .maps import read_map, require_map_suffix, write_map
from .points import POINT_SUFFIXES, read_points
from .pqr import read_pqr
from .registry import STRUCTURES, is_structure, structure_format, structure_suffix
from .tables import JsonText, check_target, guarded, require_table_suffix, unguarded, write_table
from .topologies import is_topology, read_placed, read_topology
from .writing import appending, refuse_overwriting, refuse_target, replacing, same_file

__all__ = [
    "POINT_SUFFIXES",
    "STRUCTURES",
    "JsonText",
    "appending",
    "check_target",
    "guarded",
    "is_pqr",
    "is_structure",
    "is_topology",
    "model_numbers",
    "read_conformations",
    "read_map",
    "read_molecule",
    "read_placed",
    "read_points",
    "read_pqr",
    "read_structure",
    "read_topology",
    "refuse_overwriting",
    "refuse_target",
    "replacing",
    "require_map_suffix",
    "require_table_suffix",
    "same_file",
    "structure_format",
    "structure_suffix",
    "unguarded",
    "write_map",
    "write_table",
]


def read_structure(path: str | PathLike[str], model: int | None = None) -> Structure:
    """The atoms of one model of a structure file, plain or gzip; the suffix says which format.

    path : file ending in a key of STRUCTURES, `.gz` behind it allowed
    model : number of the model as the file has it; the first if None

    Raises FormatError, naming file and line, for whatever cannot be read, and for a file that brings parameters.
    """
    found = read_molecule(path, model)
    if not isinstance(found, Structure):
        raise FormatError(f"{path}: brings its own charges and radii; read it with pele_ocl.read")
    return found


def read_molecule(path: str | PathLike[str], model: int | None = None) -> Structure | Atoms:
    """As read_structure, but Atoms from a file that brings its own charges and radii."""
    return structure_format(path).read(read_file(path), model)


def is_pqr(path: str | PathLike[str]) -> bool:
    """Whether a file brings its own charges and radii, as PQR files and topologies do; by its suffix."""
    return is_structure(path) and structure_format(path).brings_parameters
