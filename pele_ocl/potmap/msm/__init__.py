"""Multilevel summation on lattices with doubling spacings (docs/theory/msm.md)."""

from __future__ import annotations

from .lattices import Lattices
from .plan import FINEST, cutoffs, lattice_needs, tighter

__all__ = ["FINEST", "Lattices", "cutoffs", "lattice_needs", "tighter"]
