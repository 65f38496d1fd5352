"""Maps, and values at atoms, of one molecule in many frames."""

from __future__ import annotations

from .at_atoms import AtomPotentials
from .frames import MapFrames

__all__ = ["AtomPotentials", "MapFrames"]
