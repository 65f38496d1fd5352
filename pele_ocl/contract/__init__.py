"""Contract of the input: findings about structures, frames and energies, and the repair of frames."""

from __future__ import annotations

from .cells import cells_of, dimensions_of, usable_cells
from .cut_structures import whole_structure
from .findings import Action, Finding, HasFindings, impossible_bonds, of_energy, of_order, of_structure, require
from .frames import IMAGES, FrameContract, Image
from .imaging import Imager, made_whole

__all__ = [
    "IMAGES", "Action", "Finding", "FrameContract", "HasFindings", "Image", "Imager", "cells_of", "dimensions_of",
    "impossible_bonds", "made_whole", "of_energy", "of_order", "of_structure", "require", "usable_cells",
    "whole_structure",
]  # fmt: skip
