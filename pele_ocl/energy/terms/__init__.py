"""Further terms of the energy: one module each."""

from __future__ import annotations

from .center import CenterRestraint
from .dielectric import DielectricCorrections
from .distance import DistanceRestraint
from .grid_bias import GridBias, Interpolated, Metadynamics
from .lj_pairs import LennardJonesCorrections
from .restraint import PositionalRestraint
from .term import Term, TermContext, TermKernels
from .torsion import TorsionRestraint
from .variables import DistanceVariable, GyrationVariable, RMSDVariable, TorsionVariable, Variable

__all__ = [
    "CenterRestraint",
    "DielectricCorrections",
    "DistanceRestraint",
    "DistanceVariable",
    "GridBias",
    "GyrationVariable",
    "Interpolated",
    "LennardJonesCorrections",
    "Metadynamics",
    "PositionalRestraint",
    "RMSDVariable",
    "Term",
    "TermContext",
    "TermKernels",
    "TorsionRestraint",
    "TorsionVariable",
    "Variable",
]
