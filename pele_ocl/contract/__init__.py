"""Validation of input: findings about structures, frames and energies, and imaging of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for type checkers and editors
    from .cells import IMAGES, Image, cells_of, dimensions_of, usable_cells
    from .cut_structures import whole_structure
    from .findings import Action, Finding, HasFindings, impossible_bonds, of_energy, of_order, of_structure, require
    from .frames import FrameContract
    from .imaging import Imager, made_whole

__all__ = [
    "IMAGES", "Action", "Finding", "FrameContract", "HasFindings", "Image", "Imager", "cells_of", "dimensions_of",
    "impossible_bonds", "made_whole", "of_energy", "of_order", "of_structure", "require", "usable_cells",
    "whole_structure",
]  # fmt: skip

if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "cells": "IMAGES Image cells_of dimensions_of usable_cells",
            "cut_structures": "whole_structure",
            "findings": "Action Finding HasFindings impossible_bonds of_energy of_order of_structure require",
            "frames": "FrameContract",
            "imaging": "Imager made_whole",
        },
    )
