"""The room that a map of all frames needs."""

from __future__ import annotations

import numpy as np

from ...atoms import Atoms, Floats
from ...trajectories import Trajectory
from ...trajectories.streaming import ahead


def corners(frames: Trajectory, atoms: Atoms) -> Atoms:
    """Two atoms at the lowest and the highest x, y and z of all frames, less frames with an atom that is nowhere.

    Raises InputError, which names the atom, if no frame is left.
    """
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    first: Floats | None = None
    for piece in ahead(frames.pieces()):
        first = piece.positions[0] if first is None else first
        whole = piece.positions[np.isfinite(piece.positions).all(axis=(1, 2))]
        if len(whole):
            lowest, highest = np.minimum(lowest, whole.min(axis=(0, 1))), np.maximum(highest, whole.max(axis=(0, 1)))
    if first is not None and not np.isfinite(lowest).all():
        atoms.moved(first)  # names the atom that is nowhere
    return Atoms(positions=np.stack([lowest, highest]), charges=np.zeros(2))
