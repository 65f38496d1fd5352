"""Multilevel summation, as in the text books: lattices, each twice as coarse (docs/theory/msm.md)."""

from __future__ import annotations

from .lattices import Lattices
from .memory import lattice_reals
from .plan import cutoffs, tighter
from .presets import FINEST

__all__ = ["FINEST", "Lattices", "cutoffs", "lattice_reals", "tighter"]
