"""Poses of a ligand relaxed in a receptor that answers: clashes go, and poses are ranked."""

from __future__ import annotations

from .poses import Measures, Refined
from .refiner import Refiner

__all__ = ["Measures", "Refined", "Refiner"]
