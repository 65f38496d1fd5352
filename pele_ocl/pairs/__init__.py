"""Pairs of atoms: what bonds exclude, lists by distance, all pairs at once, files of pairs, and dielectrics by atom."""

from __future__ import annotations

from .allpairs import AllPairs
from .exclusions import exclusions
from .pairlist import PairList, Pairs
from .search import OneFour, all_pairs, pairs_within

__all__ = [
    "AllPairs",
    "OneFour",
    "PairList",
    "Pairs",
    "all_pairs",
    "exclusions",
    "pairs_within",
]
