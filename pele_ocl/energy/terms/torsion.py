"""Harmonic restraints of torsions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from .internal import InternalRestraint

STRAIGHT_SINE2 = 1e-28  # the square of the sine of an angle that cannot be told from 0, as in cl/physics/torsion.clh


@dataclass(frozen=True, eq=False)
class TorsionRestraint(InternalRestraint):
    """Harmonic restraint of torsions: the sum of k max(|phi - phi0| - flat, 0)^2 over fours of atoms, kcal/mol.

    The difference is periodic, at most pi. Collinear atoms have a torsion of 0 without gradient. All angles are in
    radians, not in degrees: `numpy.radians(-60)`.

    atoms : (m, 4) atoms of each torsion in order, from 0
    target : phi0, (m,) or one for all, rad, -2 pi to 2 pi; 0 for cis, pi for trans
    force_constant : k, (m,) or one for all, kcal/mol/rad^2, >= 0; the whole factor of the square, as in Amber
    flat : (m,) or one for all, rad, >= 0; no energy within this distance of phi0
    name : of the term in results

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> held = pele_ocl.TorsionRestraint([[0, 4, 10, 12]], target=0.0, force_constant=1.0)
    >>> "torsion_restraint" in pele_ocl.energy(atoms, terms=[held]).terms.names
    True
    """

    members: ClassVar[int] = 4
    units: ClassVar[tuple[str, str]] = "radians", "kcal/mol/rad^2"

    targets: ClassVar[tuple[float, float, str]] = (
        -2 * np.pi, 2 * np.pi, ", -2 pi to 2 pi; numpy.radians turns degrees into them",
    )  # fmt: skip

    name: str = "torsion_restraint"

    def _away(self, positions: Floats) -> tuple[Floats, Floats]:
        phi, slopes = torsions_of(positions)
        away: Floats = (phi - np.asarray(self.target, np.float64) + np.pi) % (2 * np.pi) - np.pi
        return away, slopes

    def put_targets(self, targets: Floats, parameters: NDArray[Any], origin: Floats) -> None:
        parameters[:, 1], parameters[:, 2] = np.cos(targets), np.sin(targets)

    def targets_of(self, parameters: NDArray[Any], origin: Floats) -> Floats:
        return np.array(np.arctan2(parameters[:, 2], parameters[:, 1]), np.float64)

    def _parameters(self) -> Floats:
        angles = np.cos(self.target), np.sin(self.target)
        return np.stack(np.broadcast_arrays(self.force_constant, *angles, self.flat), axis=1)


def torsions_of(positions: Floats) -> tuple[Floats, Floats]:
    """Torsions of fours of atoms at positions (m, 4, 3), (m,) rad, and their slopes (m, 4, 3).

    Eqs. 4 to 6 of docs/theory/bonded.md.
    """
    f, g, h = (positions[:, i] - positions[:, j] for i, j in ((0, 1), (1, 2), (3, 2)))
    a, b, g2 = np.cross(f, g), np.cross(h, g), _dot(g, g)
    on_line = (_dot(a, a) <= STRAIGHT_SINE2 * g2 * _dot(f, f)) | (_dot(b, b) <= STRAIGHT_SINE2 * g2 * _dot(h, h))
    by_a2, by_b2 = (np.where(on_line, 0, x) / np.where(on_line, 1, _dot(x, x)) for x in (a, b))
    length = np.sqrt(g2)
    phi = np.where(on_line, 0, np.arctan2(-length * _dot(f, b), _dot(a, b)))[:, 0]
    by_i, by_l = -length * by_a2, length * by_b2
    turn = (_dot(f, g) * by_a2 - _dot(h, g) * by_b2) / np.where(g2 > 0, length, 1)
    return phi, np.stack([by_i, turn - by_i, -turn - by_l, by_l], axis=1)


def _dot(a: Floats, b: Floats) -> Floats:
    """Products of vectors (m, 3), (m, 1)."""
    product: Floats = (a * b).sum(axis=1, keepdims=True)
    return product
