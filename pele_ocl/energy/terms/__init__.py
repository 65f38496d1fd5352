"""Additional energy terms, one module each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from .corrections import DielectricCorrections, LennardJonesCorrections
    from .grid_bias import GridBias, Growing, Interpolated, Metadynamics
    from .internal import DistanceRestraint, TorsionRestraint
    from .opes import OPES
    from .restraint import CenterRestraint, PositionalRestraint
    from .term import Term, TermContext, TermKernels
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

if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "corrections": "DielectricCorrections LennardJonesCorrections",
            "grid_bias": "GridBias Growing Interpolated Metadynamics",
            "internal": "DistanceRestraint TorsionRestraint",
            "opes": "OPES",
            "restraint": "CenterRestraint PositionalRestraint",
            "term": "Term TermContext TermKernels",
            "variables": "DistanceVariable GyrationVariable RMSDVariable TorsionVariable Variable",
        },
    )
