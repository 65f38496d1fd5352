"""Boxes that the centre of a ligand must not leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats


class Box:
    """Region of space."""

    def contains(self, points: Floats) -> NDArray[np.bool_]:
        """Tell of points (n, 3) A if each lies inside, (n,)."""
        raise NotImplementedError
