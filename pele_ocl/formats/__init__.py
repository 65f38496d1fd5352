"""Molecular structure files in, result files out, map files both ways; one module a format."""

from __future__ import annotations

from .maps import read_map, require_map_suffix, write_map
from .points import POINT_SUFFIXES, read_points
from .pqr import read_pqr
from .registry import STRUCTURES, is_structure, structure_format, structure_suffix
from .structures import (
    is_pqr,
    is_topology,
    model_numbers,
    read_conformations,
    read_structure,
    read_structure_or_atoms,
    read_topology,
)
from .tables import JsonText, check_target, guarded, require_table_suffix, unguarded, write_table
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
    "read_points",
    "read_pqr",
    "read_structure",
    "read_structure_or_atoms",
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
