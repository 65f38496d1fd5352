"""Readers of structure files, writers of result files, and both for maps, with one module per format.

Other packages and tests import the names below from here, so that modules can be merged and moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:  # the names below, for type checkers and editors
    from .amber import place
    from .b_factors import read_b_factors
    from .cells import read_cell
    from .conformation_files import (
        CONFORMATION_FORMATS,
        ConformationFile,
        Content,
        layout_of,
        write_conformation,
        write_conformations,
    )
    from .hdf5 import SparseFile
    from .maps import read_extra_maps, read_map, require_map_suffix, write_map
    from .maps.pictures import draw_slices, require_png
    from .pdb_writing import Ion, write_pdb_with_ions
    from .points import POINT_SUFFIXES, read_points
    from .pqr import read_pqr, write_pqr
    from .registry import (
        MAPS,
        STRUCTURES,
        Details,
        MapFormat,
        StructureFormat,
        is_pdb,
        is_structure,
        structure_format,
        structure_suffix,
    )
    from .structures import (
        brings_parameters,
        is_topology,
        model_numbers,
        read_conformations,
        read_structure,
        read_structure_or_atoms,
        read_topology,
    )
    from .tables import JsonText, check_target, guarded, require_table_suffix, unguarded, write_table

__all__ = [
    "CONFORMATION_FORMATS",
    "MAPS",
    "POINT_SUFFIXES",
    "STRUCTURES",
    "ConformationFile",
    "Content",
    "Details",
    "Ion",
    "JsonText",
    "MapFormat",
    "SparseFile",
    "StructureFormat",
    "brings_parameters",
    "check_target",
    "draw_slices",
    "guarded",
    "is_pdb",
    "is_structure",
    "is_topology",
    "layout_of",
    "model_numbers",
    "place",
    "read_b_factors",
    "read_cell",
    "read_conformations",
    "read_extra_maps",
    "read_map",
    "read_points",
    "read_pqr",
    "read_structure",
    "read_structure_or_atoms",
    "read_topology",
    "require_map_suffix",
    "require_png",
    "require_table_suffix",
    "structure_format",
    "structure_suffix",
    "unguarded",
    "write_conformation",
    "write_conformations",
    "write_map",
    "write_pdb_with_ions",
    "write_pqr",
    "write_table",
]

if not TYPE_CHECKING:  # names of each module; those not in __all__ are for tests
    __getattr__ = lazy_names(
        __name__,
        {
            "amber": "place",
            "b_factors": "read_b_factors",
            "cells": "read_cell",
            "conformation_files": "CONFORMATION_FORMATS ConformationFile Content "
            "layout_of write_conformation write_conformations",
            "hdf5": "SparseFile",
            "maps.pictures": "draw_slices require_png",
            "pdb_writing": "Ion write_pdb_with_ions",
            "pqr": "read_pqr write_pqr",
            "maps": "read_extra_maps read_map require_map_suffix write_map",
            "points": "POINT_SUFFIXES read_points",
            "registry": "MAPS STRUCTURES Details MapFormat "
            "StructureFormat is_pdb is_structure structure_format structure_suffix",
            "structures": "brings_parameters is_topology model_numbers "
            "read_conformations read_structure read_structure_or_atoms read_topology",
            "tables": "JsonText check_target guarded require_table_suffix unguarded write_table",
        },
    )
