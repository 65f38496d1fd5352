"""The molecule at other positions, made while a device computes it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import numbers
from ..atoms import Atoms, Floats
from ..errors import InputError


class Moving:
    """Positions for one evaluation, and the Atoms there, which copy and check them.

    conformations : (1, n, 3) A, as they were given: perhaps not finite
    is_moved : whether any were given
    """

    def __init__(self, atoms: Atoms, positions: ArrayLike | None) -> None:
        """positions : (n, 3) A; None for the atoms' own. Raises InputError for another shape."""
        self._start = atoms
        self.is_moved = positions is not None
        there = atoms.positions if positions is None else numbers("positions", positions)
        if there.shape != atoms.positions.shape:
            raise InputError(f"positions have shape {there.shape}; ({len(atoms)}, 3) is needed")
        self.conformations: Floats = there[np.newaxis]

    @cached_property
    def atoms(self) -> Atoms:
        """The atoms at the positions. Raises InputError for positions that are not finite."""
        return self._start.moved(self.conformations[0]) if self.is_moved else self._start

    def make(self) -> None:
        """Make the atoms now."""
        _ = self.atoms
