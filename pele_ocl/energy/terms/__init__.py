"""Further terms of the energy: one module each."""

from __future__ import annotations

from .restraint import PositionalRestraint
from .term import Term

__all__ = ["PositionalRestraint", "Term"]
