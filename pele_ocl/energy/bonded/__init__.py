"""Bonded terms and 1-4 pairs on a device, computed in groups of neighbouring atoms."""

from __future__ import annotations

from .kernels import BondedTerms, bonded_names
from .tasks import TABLES_OF_TERMS

__all__ = ["TABLES_OF_TERMS", "BondedTerms", "bonded_names"]
