"""Atoms without positions, as in AMBER topology files."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from ..common import arguments
from ..common.errors import InputError
from .atoms import Atoms


@dataclass(frozen=True, eq=False)
class Topology:
    """Parameters, labels and bonded terms of n atoms without positions.

    parameters : the Atoms, with all positions at the origin
    source : name of the file, for messages
    """

    parameters: Atoms
    source: str

    def __len__(self) -> int:
        return len(self.parameters)

    def with_positions(self, positions: ArrayLike, notes: tuple[str, ...] = ()) -> Atoms:
        """Return Atoms with positions (n, 3) A. The parameters are shared, not copied.

        notes : messages about the positions, for `Atoms.notes`

        Raises InputError for another number of positions, or if they are not finite.
        """
        there = arguments.positions_of(positions)
        if len(there) != len(self):
            raise InputError(f"{len(there):,} positions for the {len(self):,} atoms of {self.source}")
        atoms = self.parameters.moved(there)
        return replace(atoms, notes=(*atoms.notes, *notes)) if notes else atoms
