"""Further terms of the energy: one module each."""

from __future__ import annotations

from .restraint import PositionalRestraint
from .term import Addend, Term

__all__ = ["Addend", "PositionalRestraint", "Term"]
