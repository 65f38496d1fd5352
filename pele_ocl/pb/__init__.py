"""Poisson-Boltzmann electrostatics by finite differences."""

from __future__ import annotations

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
