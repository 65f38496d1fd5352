"""Pairs of atoms: what bonds exclude, lists by distance, all pairs at once, files of pairs, and dielectrics by atom."""

from __future__ import annotations

from .allpairs import AllPairs
from .bonded import exclusions
from .dielectric import internal_dielectrics
from .files import PAIR_SUFFIXES, read_pairs, require_pairs_suffix, write_pairs, writing_pairs
from .nonbonded import NonbondedPairs, lj_corrections, nonbonded_pairs, own_lj_pairs
from .pairlist import PairList, Pairs, require_pairs
from .search import OneFour, all_pairs, pairs_within, without_bonded
from .split import LONG_CUTOFFS, SHORT_CUTOFFS, SplitCutoffs, pairs_split

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
    "exclusions",
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
