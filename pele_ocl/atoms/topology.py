"""Atoms with their parameters and without positions, as the topology files of AMBER hold them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from ..common import arguments
from ..common.errors import InputError
from .atoms import Atoms


@dataclass(frozen=True, eq=False)
class Topology:
    """Parameters, labels and bonded terms of n atoms, which positions make Atoms.

    parameters : the Atoms, all of them at the origin
    source : name of the file, for messages
    """

    parameters: Atoms
    source: str

    def __len__(self) -> int:
        return len(self.parameters)

    def with_positions(self, positions: ArrayLike, notes: tuple[str, ...] = ()) -> Atoms:
        """Place the atoms at positions (n, 3) A; the parameters were checked before and are shared.

        notes : messages about the positions, for `Atoms.notes`

        Raises InputError for positions of another number of atoms, or that are not finite.
        """
        there = arguments.positions_of(positions)
        if len(there) != len(self):
            raise InputError(f"{len(there):,} positions for the {len(self):,} atoms of {self.source}")
        atoms = self.parameters.moved(there)
        return replace(atoms, notes=(*atoms.notes, *notes)) if notes else atoms
