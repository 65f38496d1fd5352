"""The room that a map of all frames needs."""

from __future__ import annotations

import numpy as np

from ...atoms import Atoms
from ...trajectories import Trajectory
from ...trajectories.streaming import ahead


def corners(frames: Trajectory, atoms: Atoms) -> Atoms:
    """Two atoms at the lowest and the highest x, y and z of all frames, around which a grid has room for them."""
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    for piece in ahead(frames.pieces()):
        flat = piece.positions.reshape(-1, 3)
        lowest, highest = np.minimum(lowest, flat.min(axis=0)), np.maximum(highest, flat.max(axis=0))
        if not np.isfinite([lowest, highest]).all():
            for positions in piece.positions:
                atoms.moved(positions)  # names the atom that is nowhere
    return Atoms(positions=np.stack([lowest, highest]), charges=np.zeros(2))
