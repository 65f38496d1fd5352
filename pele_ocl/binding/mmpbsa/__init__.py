"""Runs of MMPBSA.py and gmx_MMPBSA by their own input files, with results in their layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "files": "read_index",
            "mutants": "mutant_of mutated_residue residue_named",
            "namelists": "MmpbsaInput read_input",
            "reference": "layout_of",
            "residues": "backbone",
            "sources": "parts_by_topologies",
        },
    )
