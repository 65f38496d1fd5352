"""Harmonic restraints of distances between pairs of atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from .internal import InternalRestraint


@dataclass(frozen=True, eq=False)
class DistanceRestraint(InternalRestraint):
    """Harmonic restraint of distances: the sum of k max(|r - r0| - flat, 0)^2 over pairs of atoms, kcal/mol.

    atoms : (m, 2) pairs of atoms, from 0
    target : r0, (m,) or one for all, A, >= 0
    force_constant : k, (m,) or one for all, kcal/mol/A^2, >= 0; the whole factor of the square, as in Amber
    flat : (m,) or one for all, A, >= 0; no energy within this distance of r0
    name : of the term in results

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> held = pele_ocl.DistanceRestraint([[0, 31]], target=5.0, force_constant=2.0)
    >>> pele_ocl.energy(atoms, terms=[held]).distance_restraint > 0
    True
    """

    members: ClassVar[int] = 2
    units: ClassVar[tuple[str, str]] = "Angstrom", "kcal/mol/A^2"

    targets: ClassVar[tuple[float, float, str]] = 0.0, np.inf, ", 0 or more"

    name: str = "distance_restraint"

    def _away(self, positions: Floats) -> tuple[Floats, Floats]:
        d = positions[:, 0] - positions[:, 1]
        r = np.linalg.norm(d, axis=1)
        unit = d / np.where(r > 0, r, np.inf)[:, None]
        return r - self.target, np.stack([unit, -unit], axis=1)

    def put_targets(self, targets: Floats, parameters: NDArray[Any], origin: Floats) -> None:
        parameters[:, 1] = targets

    def targets_of(self, parameters: NDArray[Any], origin: Floats) -> Floats:
        return np.array(parameters[:, 1], np.float64)

    def _parameters(self) -> Floats:
        return np.stack(np.broadcast_arrays(self.force_constant, self.target, self.flat, 0.0), axis=1)
