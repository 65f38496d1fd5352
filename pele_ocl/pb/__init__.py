"""Poisson-Boltzmann electrostatics by finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from ..pb_model import PBIon, PBMaps, PBModel, centre_of, focusing_grids, grid_at, lowered_shape
from .plan import PoissonBoltzmann
from .result import PBErrors, PBLevelResult, PBResult
from .solvers import SOLVERS

__all__ = [
    "SOLVERS",
    "PBErrors",
    "PBIon",
    "PBLevelResult",
    "PBMaps",
    "PBModel",
    "PBResult",
    "PoissonBoltzmann",
    "centre_of",
    "focusing_grids",
    "grid_at",
    "lowered_shape",
]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "colours": "Colours",
            "equation": "Equation solve",
            "launching": "Launching NodeValues add_at",
            "levels": "solve_together",
            "probes": "probe_points",
            "surface": "find_coefficients",
        },
    )
