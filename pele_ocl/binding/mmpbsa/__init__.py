"""Runs of MMPBSA.py and gmx_MMPBSA by their own input files, with results in their layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .result import MmpbsaResult
from .runs import mmpbsa

__all__ = ["MmpbsaResult", "mmpbsa"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "namelists": "MmpbsaInput read_input",
            "residues": "backbone mutant_of mutated_residue residue_named",
            "systems": "layout_of parts_by_topologies read_index",
        },
    )
