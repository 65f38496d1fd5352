"""Poses of a ligand relaxed in a receptor that answers: clashes go, and poses are ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .poses import Measures, Refined
from .refiner import Refiner

__all__ = ["Measures", "Refined", "Refiner"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "poses": "CLASH clashes_of ranks_of",
        },
    )
