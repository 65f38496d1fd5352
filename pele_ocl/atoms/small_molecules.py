"""Detection of poses that overlap with small molecules of the receptor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.errors import InputError
from .atoms import Atoms
from .labels import Floats
from .selection import residue_kinds

_SAME_PLACE, _OVERLAP = 2.0, 1.5  # distances between heavy atoms of a pose and of another small molecule, A
_MOST_OVERLAPPING = 3  # heavy atoms


class SmallMolecules:
    """Small molecules of a receptor that poses must not overlap: residues of kind "ligand".

    atoms : receptor or complex, with labels; ligand : indices of the ligand's atoms in the complex
    """

    def __init__(self, atoms: Atoms, ligand: NDArray[np.integer[Any]] | Sequence[int] = ()) -> None:
        assert atoms.labels is not None
        self._labels = labels = atoms.labels
        sizes = np.diff(labels.residue_starts, append=len(labels))
        chosen = np.repeat(residue_kinds(labels) == "ligand", sizes) & (labels.elements != "H")
        own = labels.residue_index[np.asarray(ligand, np.int64)]
        self._atoms = np.flatnonzero(chosen & ~np.isin(labels.residue_index, own))

    def require_apart(self, positions: Floats, pose: Floats) -> None:
        """Raise InputError if a pose overlaps with one of them, such as the crystal ligand of the receptor.

        Two molecules overlap if half of the heavy atoms of either are within 2 A of the other, or three heavy atoms are
        within 1.5 A. Cofactors in contact with a docked pose are farther away: 3.4 A between carbons, 2.6 A in a
        hydrogen bond.

        positions : (n, 3) A of all atoms; pose : (k, 3) A of the ligand's heavy atoms
        """
        if not len(self._atoms) or not len(pose):
            return
        apart = np.linalg.norm(positions[self._atoms][:, None] - pose, axis=2)
        residues = self._labels.residue_index[self._atoms]
        for residue in np.unique(residues).tolist():
            own = apart[residues == residue]
            near = own.min(axis=1) <= _SAME_PLACE
            near_pose = own.min(axis=0) <= _SAME_PLACE
            within = np.count_nonzero(own.min(axis=1) <= _OVERLAP)
            if 2 * near.sum() >= len(own) or 2 * near_pose.sum() >= len(pose) or within >= _MOST_OVERLAPPING:
                first = int(self._atoms[residues == residue][0])
                name = str(self._labels.residue_names[first])
                raise InputError(
                    f"the receptor still has the residue {self._labels.residue(first)} at the position of the pose: "
                    f"{near.sum():,} of its {len(own):,} heavy atoms are within {_SAME_PLACE:g} A of it; leave it out "
                    f"by `without={name!r}`",
                    code="occupied",
                )
