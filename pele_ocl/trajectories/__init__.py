"""Trajectories: frames of files in pieces, energies of all of them, and results that outlive the program."""

from __future__ import annotations

from .conformations import read_conformations
from .energies import FrameEnergies, batches_over, energy_over
from .reading import Trajectory, trajectory

__all__ = [
    "FrameEnergies", "Trajectory", "batches_over", "energy_over", "read_conformations", "trajectory",
]  # fmt: skip
