"""Further terms of the energy: one module each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for checkers and editors
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

if not TYPE_CHECKING:  # names by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "center": "CenterRestraint",
            "dielectric": "DielectricCorrections",
            "distance": "DistanceRestraint",
            "lj_pairs": "LennardJonesCorrections",
            "restraint": "PositionalRestraint",
            "term": "Term TermContext TermKernels",
            "torsion": "TorsionRestraint",
        },
    )
