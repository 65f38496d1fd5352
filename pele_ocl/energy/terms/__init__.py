"""Further terms of the energy: one module each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from .center import CenterRestraint
    from .dielectric import DielectricCorrections
    from .distance import DistanceRestraint
    from .grid_bias import GridBias, Growing, Interpolated, Metadynamics
    from .lj_pairs import LennardJonesCorrections
    from .opes import OPES
    from .restraint import PositionalRestraint
    from .term import Term, TermContext, TermKernels
    from .torsion import TorsionRestraint
    from .variables import DistanceVariable, GyrationVariable, RMSDVariable, TorsionVariable, Variable

__all__ = [
    "OPES",
    "CenterRestraint",
    "DielectricCorrections",
    "DistanceRestraint",
    "DistanceVariable",
    "GridBias",
    "Growing",
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

if not TYPE_CHECKING:  # names by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "center": "CenterRestraint",
            "dielectric": "DielectricCorrections",
            "distance": "DistanceRestraint",
            "grid_bias": "GridBias Growing Interpolated Metadynamics",
            "lj_pairs": "LennardJonesCorrections",
            "opes": "OPES",
            "restraint": "PositionalRestraint",
            "term": "Term TermContext TermKernels",
            "torsion": "TorsionRestraint",
            "variables": "DistanceVariable GyrationVariable RMSDVariable TorsionVariable Variable",
        },
    )
