"""Multilevel summation, as the text books have it: lattices, each twice as coarse (docs/theory/msm.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .lattices import Lattices
from .memory import lattice_reals
from .plan import cutoffs, tighter
from .presets import FINEST

__all__ = ["FINEST", "Lattices", "cutoffs", "lattice_reals", "tighter"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "interpolant": "Interpolant",
            "lattices": "LatticeLayout",
            "levels": "LatticeLevel Stencil levels_from",
            "splitting": "Splitting",
        },
    )
