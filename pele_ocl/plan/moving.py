"""The molecule at other positions, made while a device computes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import numbers
from ..atoms import Atoms, Floats, placed
from ..errors import InputError


class Moving:
    """Positions for one evaluation, and the Atoms there.

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
        self._atoms = None if self.is_moved else atoms

    @property
    def atoms(self) -> Atoms:
        """The atoms at the positions, which the evaluator found to be finite."""
        if self._atoms is None:
            self._atoms = placed(self._start, self.conformations[0])
        return self._atoms

    def make(self) -> None:
        """Make the atoms now, from the positions as they are now."""
        _ = self.atoms
