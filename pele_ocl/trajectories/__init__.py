"""Trajectories: reading frames in pieces, computing their energies, and recording the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:  # the names below, for type checkers and editors
    from .conformations import read_conformations
    from .energies import FrameEnergies, batches_over
    from .reading import Trajectory, trajectory

__all__ = [
    "FrameEnergies", "Trajectory", "batches_over", "read_conformations", "trajectory",
]  # fmt: skip

if not TYPE_CHECKING:  # names of each module
    __getattr__ = lazy_names(
        __name__,
        {
            "conformations": "read_conformations",
            "energies": "FrameEnergies batches_over",
            "reading": "Trajectory trajectory",
        },
    )
