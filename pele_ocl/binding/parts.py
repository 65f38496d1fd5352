"""The atoms of a complex, and of it those of the receptor and those of the ligand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import array
from ..atoms import Atoms, require_atoms
from ..atoms.selection import residue_kinds
from ..errors import InputError

Chosen = str | ArrayLike
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Parts:
    """Which atoms a complex and its parts have.

    complex : (k,) indices among all atoms, rising
    receptor, ligand : indices among the k; each atom is in one of the two
    notes : sentences about the choice
    """

    complex: NDArray[np.intp]
    receptor: NDArray[np.intp]
    ligand: NDArray[np.intp]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, atoms: Atoms, ligand: Chosen, receptor: Chosen | None = None) -> Parts:
        """The parts that selections name. receptor : by default all but ligand and water

        Raises InputError for a selection without atoms, and where receptor and ligand share an atom.
        """
        require_atoms(atoms)
        is_ligand = _mask(atoms, ligand, "ligand")
        notes: tuple[str, ...] = ()
        if receptor is None:
            is_receptor = ~is_ligand
            is_water = is_receptor & _water(atoms)
            if is_water.any():
                is_receptor &= ~is_water
                notes = (
                    f"{int(is_water.sum()):,} atoms of water are left out; a receptor that is named may hold them",
                )
            if not is_receptor.any():
                raise InputError("the ligand holds all atoms, and so there is no receptor")
        else:
            is_receptor = _mask(atoms, receptor, "receptor")
        shared = np.flatnonzero(is_ligand & is_receptor)
        if len(shared):
            raise InputError(f"{atoms.describe(int(shared[0]))} is in the receptor and in the ligand; name it in one")
        chosen = np.flatnonzero(is_ligand | is_receptor)
        parts = cls(chosen, np.flatnonzero(is_receptor[chosen]), np.flatnonzero(is_ligand[chosen]), notes)
        return parts._with_bond_note(atoms)

    def _with_bond_note(self, atoms: Atoms) -> Parts:
        """The parts with a note where bonds run between them."""
        side = np.zeros(len(atoms), np.int8)
        side[self.complex[self.receptor]], side[self.complex[self.ligand]] = 1, 2
        ends = side[atoms.bond_pairs]
        crossing = int(((ends > 0).all(axis=1) & (ends[:, 0] != ends[:, 1])).sum()) if len(ends) else 0
        if not crossing:
            return self
        note = (
            f"receptor and ligand are bonded to each other (bonds: {crossing:,}); the difference holds the terms of "
            "these bonds, and is no binding energy of two molecules"
        )
        return Parts(self.complex, self.receptor, self.ligand, (*self.notes, note))


def _mask(atoms: Atoms, chosen: Chosen, name: str) -> Bools:
    """The atoms that a selection, a mask or indices name, (n,)."""
    if isinstance(chosen, str):
        return atoms.selected(chosen)
    given = array(f"the {name}", chosen, "iub", "a selection, a mask or indices")
    mask = np.zeros(len(atoms), bool)
    try:
        mask[given] = True
    except IndexError:
        raise InputError(f"the {name} has shape {given.shape} or names no atom of the {len(atoms):,}") from None
    if not mask.any():
        raise InputError(f"the {name} holds no atom")
    return mask


def _water(atoms: Atoms) -> Bools:
    """Which atoms are water's, (n,)."""
    if atoms.labels is None:
        return np.zeros(len(atoms), bool)
    starts = atoms.labels.residue_starts
    return np.repeat(residue_kinds(atoms.labels) == "water", np.diff(starts, append=len(atoms)))


def run_of(indices: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Rising indices, as a slice where they have no gap: an array is then looked at, not copied."""
    is_run = len(indices) == indices[-1] - indices[0] + 1
    return slice(int(indices[0]), int(indices[-1]) + 1) if is_run else indices
