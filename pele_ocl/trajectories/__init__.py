"""Trajectories: frames of files in pieces, energies of all of them, and results that outlive the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from .energies import FrameEnergies, batches_over, energy_over
from .reading import Trajectory, trajectory

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from .maps import FrameMaps as FrameMaps
    from .maps import potmap_over as potmap_over
    from .potentials import FramePotentials as FramePotentials
    from .potentials import potentials_over as potentials_over

__all__ = [
    "FrameEnergies", "FrameMaps", "FramePotentials", "Trajectory", "batches_over", "energy_over", "potentials_over",
    "potmap_over", "trajectory",
]  # fmt: skip

if not TYPE_CHECKING:  # names by the file that has them: of maps, which few need, and for tests
    __getattr__ = lazy_names(
        __name__,
        {
            "energies": "recorded",
            "fingerprints": "sha256_of",
            "maps": "FrameMaps potmap_over",
            "potentials": "FramePotentials potentials_over",
            "statistics": "Statistics",
            "streaming": "FrameResults results_over",
            "superposing": "Superposition",
            "tally": "Rate",
        },
    )
