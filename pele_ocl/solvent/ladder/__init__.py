"""Ladder of the thesis: Born radii by plain loops, each rung a step farther from one CPU core.

Read sequential, inner, outer and pair in this order. The rungs are apart from the engine (`tiled`). Each computes the
radii of one conformation, and the engine's energy passes take them from there.
"""

from __future__ import annotations

from .inner import Inner
from .outer import Outer
from .pair import Pair
from .passes import LadderPasses
from .rung import ITEMS, Molecule, Rung
from .sequential import Sequential

__all__ = ["ITEMS", "Inner", "LadderPasses", "Molecule", "Outer", "Pair", "Rung", "Sequential"]
