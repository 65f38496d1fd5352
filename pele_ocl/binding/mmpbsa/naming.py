"""Residues as the tables of decompositions name them, and the groups of their energies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms

HEADS = ("Internal", "van der Waals", "Electrostatic", "Polar Solvation", "Non-Polar Solv.", "TOTAL")


class ResidueNames:
    """Residues of the complex as the tables name them, and the place of each in its part."""

    def __init__(self, atoms: Atoms, is_ligand: NDArray[np.bool_] | None, of_gromacs: bool) -> None:
        labels = atoms.labels
        assert labels is not None
        starts = labels.residue_starts
        self.names = labels.residue_names[starts].tolist()
        self.side = np.zeros(len(starts), bool) if is_ligand is None else is_ligand[starts]
        self.own = np.zeros(len(starts), int)
        for side in (False, True):
            self.own[self.side == side] = np.arange(1, int((self.side == side).sum()) + 1)
        self._labels, self._of_gromacs = labels, of_gromacs

    def of(self, residue: int, system: str) -> str:
        """A residue of the complex, by its number in the system."""
        if self._of_gromacs:
            found = self._labels.residues[residue]
            return (
                f"{'L' if self.side[residue] else 'R'}:{found.chain}:{found.name}:{found.number}{found.insertion_code}"
            )
        number = residue + 1 if system in ("complex", "delta") else int(self.own[residue])
        return f"{self.names[residue]:>3s}{number:4d}"

    def location(self, residue: int) -> str:
        return f"{'L' if self.side[residue] else 'R'} {self.names[residue]:>3s}{self.own[residue]:4d}"

    def in_complex(self, residues: NDArray[np.intp], system: str, is_single: bool) -> list[int]:
        """Numbers in the complex of a system's residues."""
        if system == "complex" or is_single:
            return [int(r) for r in residues]
        places = np.flatnonzero(self.side == (system == "ligand"))
        return [int(places[r]) for r in residues]
