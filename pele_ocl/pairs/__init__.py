"""Pairs of atoms: exclusions, lists by distance, all pairs, files of pairs, and internal dielectric constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from .dielectric import internal_dielectrics
    from .files import PAIR_SUFFIXES, read_pairs, require_pairs_suffix, write_pairs, writing_pairs
    from .nonbonded import NonbondedPairs, lj_corrections, nonbonded_pairs, own_lj_pairs
    from .pairlist import AllPairs, PairList, Pairs, require_pairs
    from .search import (
        LONG_CUTOFFS,
        SHORT_CUTOFFS,
        OneFour,
        SplitCutoffs,
        all_pairs,
        pairs_split,
        pairs_within,
        without_bonded,
    )

__all__ = [
    "LONG_CUTOFFS",
    "PAIR_SUFFIXES",
    "SHORT_CUTOFFS",
    "AllPairs",
    "NonbondedPairs",
    "OneFour",
    "PairList",
    "Pairs",
    "SplitCutoffs",
    "all_pairs",
    "internal_dielectrics",
    "lj_corrections",
    "nonbonded_pairs",
    "own_lj_pairs",
    "pairs_split",
    "pairs_within",
    "read_pairs",
    "require_pairs",
    "require_pairs_suffix",
    "without_bonded",
    "write_pairs",
    "writing_pairs",
]

if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "dielectric": "internal_dielectrics",
            "files": "PAIR_SUFFIXES read_pairs require_pairs_suffix write_pairs writing_pairs",
            "nonbonded": "NonbondedPairs lj_corrections nonbonded_pairs own_lj_pairs",
            "pairlist": "AllPairs PairList Pairs require_pairs",
            "search": "LONG_CUTOFFS SHORT_CUTOFFS OneFour SplitCutoffs all_pairs pairs_split pairs_within "
            "without_bonded",
        },
    )
