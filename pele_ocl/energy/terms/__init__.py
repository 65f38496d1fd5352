"""Further terms of the energy: one module each."""

from __future__ import annotations

from .center import CenterRestraint
from .dielectric import DielectricCorrections
from .distance import DistanceRestraint
from .lj_pairs import LennardJonesCorrections
from .restraint import PositionalRestraint
from .term import Term, TermContext, TermKernels
from .torsion import TorsionRestraint

__all__ = [
    "CenterRestraint",
    "DielectricCorrections",
    "DistanceRestraint",
    "LennardJonesCorrections",
    "PositionalRestraint",
    "Term",
    "TermContext",
    "TermKernels",
    "TorsionRestraint",
]
