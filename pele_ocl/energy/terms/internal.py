"""Harmonic restraints of internal coordinates: distances and torsions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...atoms import Atoms, Floats, require_atoms
from ...atoms.bonded import names_twice
from ...common.arguments import array, numbers
from ...common.errors import InputError
from ...common.readonly import read_only
from .term import Term, TermContext

if TYPE_CHECKING:
    from ...opencl.binding import Launch


@dataclass(frozen=True, eq=False)
class InternalRestraint(Term):
    """Flat-bottomed harmonic restraints of an internal coordinate; docs/theory/restraints.md.

    members : number of atoms that define the coordinate
    units : units of the coordinate and of the force constant
    targets : smallest and largest allowed target, and the text for messages
    """

    members: ClassVar[int]
    units: ClassVar[tuple[str, str]]
    targets: ClassVar[tuple[float, float, str]]

    atoms: ArrayLike
    target: ArrayLike
    force_constant: ArrayLike
    flat: ArrayLike = 0.0
    name: str = "internal_restraint"

    def __post_init__(self) -> None:
        atoms = array("atoms to restrain", self.atoms, "iu", "indices")
        if atoms.ndim != 2 or atoms.shape[1] != self.members or not len(atoms):
            raise InputError(f"atoms to restrain have shape {atoms.shape}; expected (m, {self.members})")
        twice = np.flatnonzero(names_twice(atoms))
        if len(twice):
            raise InputError(f"atoms to restrain must be {self.members} different ones; {atoms[twice[0]]} are not")
        object.__setattr__(self, "atoms", read_only(atoms, np.int64))
        unit, unit_of_k = self.units
        positive = 0.0, np.inf, ", 0 or more"
        for name, of, (least, most, bound) in (
            ("target", unit, self.targets), ("force_constant", unit_of_k, positive), ("flat", unit, positive),
        ):  # fmt: skip
            values = numbers(name, getattr(self, name))
            if values.shape not in ((), (len(atoms),)) or not _fit(values, least, most):
                raise InputError(f"{name} must be one or {len(atoms)} numbers of {of}{bound}")
            object.__setattr__(self, name, read_only(np.broadcast_to(values, len(atoms)), np.float64))

    def check_targets(self, targets: Floats) -> None:
        """Raise InputError for targets (m,) out of range."""
        least, most, bound = self.targets
        if not _fit(targets, least, most):
            raise InputError(f"targets must be numbers of {self.units[0]}{bound}")

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of the targets, (m,)."""
        return (len(self._atoms()),)

    @abstractmethod
    def put_targets(self, targets: Floats, parameters: NDArray[Any], origin: Floats) -> None:
        """Store targets (m,) in kernel parameters (m, 4). origin : (3,) A, not used"""

    @abstractmethod
    def targets_of(self, parameters: NDArray[Any], origin: Floats) -> Floats:
        """Return the targets (m,) stored in kernel parameters (m, 4)."""

    def check(self, atoms: Atoms) -> None:
        require_atoms(atoms)
        if self._atoms().min() < 0 or self._atoms().max() >= len(atoms):
            raise InputError(f"atoms to restrain must be of 0 to {len(atoms) - 1}")

    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        self.check(atoms)
        away, slopes = self._away(atoms.positions[self._atoms()])
        k, beyond = np.asarray(self.force_constant), np.maximum(np.abs(away) - self.flat, 0) * np.sign(away)
        energies, gradient = np.zeros(len(atoms)), np.zeros((len(atoms), 3))
        np.add.at(energies, self._atoms(), (k * beyond**2 / self.members)[:, None])
        np.add.at(gradient, self._atoms(), (2 * k * beyond)[:, None, None] * slopes)
        return energies, gradient

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, encoding, n, members = context.queue, context.encoding, len(context.atoms), self._atoms()
        fine = queue.dtype if encoding.is_fixed else np.dtype(np.float64)
        places = np.argsort(members.ravel(), kind="stable")
        starts = np.searchsorted(members.ravel()[places], np.arange(n + 1))
        context.buffers[f"parameters of {self.name}"] = parameters = queue.upload_each(self._parameters(), fine)
        arguments = dict(
            atoms=queue.upload(members, np.int32), parameters=parameters,
            starts=queue.upload(starts, np.int32), places=queue.upload(places, np.int32),
        )  # fmt: skip
        return [
            context.bind("energy/terms/internal.cl", "restrain_internal", index, arguments, MEMBERS=self.members)
        ]  # fmt: skip

    def _atoms(self) -> NDArray[np.int64]:
        """Atoms of each restraint, (m, members)."""
        return np.asarray(self.atoms, np.int64)

    @abstractmethod
    def _away(self, positions: Floats) -> tuple[Floats, Floats]:
        """Deviation of the coordinates at positions (m, members, 3) from their targets (m,), and derivatives."""

    @abstractmethod
    def _parameters(self) -> Floats:
        """Kernel parameters of each restraint, (m, 4)."""


def _fit(values: Floats, least: float, most: float) -> bool:
    """Return whether all values are finite and within bounds."""
    return bool((np.isfinite(values) & (values >= least) & (values <= most)).all())


@dataclass(frozen=True, eq=False)
class DistanceRestraint(InternalRestraint):
    """Harmonic restraint of distances: the sum of k max(|r - r0| - flat, 0)^2 over pairs of atoms, kcal/mol.

    atoms : (m, 2) pairs of atoms, from 0
    target : r0, (m,) or one for all, A, >= 0
    force_constant : k, (m,) or one for all, kcal/mol/A^2, >= 0; without a factor of 1/2, as in Amber
    flat : (m,) or one for all, A, >= 0; the energy is 0 within this distance of r0
    name : name of the term in results

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


STRAIGHT_SINE2 = 1e-28  # squared sine below which an angle counts as 0 or pi, as in cl/physics/torsion.clh


@dataclass(frozen=True, eq=False)
class TorsionRestraint(InternalRestraint):
    """Harmonic restraint of torsions: the sum of k max(|phi - phi0| - flat, 0)^2 over sets of four atoms, kcal/mol.

    The difference is periodic, at most pi. Collinear atoms have a torsion of 0 without gradient. All angles are in
    radians: use `numpy.radians(-60)` for degrees.

    atoms : (m, 4) atoms of each torsion in order, from 0
    target : phi0, (m,) or one for all, rad, -2 pi to 2 pi; 0 for cis, pi for trans
    force_constant : k, (m,) or one for all, kcal/mol/rad^2, >= 0; without a factor of 1/2, as in Amber
    flat : (m,) or one for all, rad, >= 0; the energy is 0 within this distance of phi0
    name : name of the term in results

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
    """Torsions (m,) rad of positions (m, 4, 3), and derivatives (m, 4, 3); eqs. 4 to 6 of docs/theory/bonded.md."""
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
    """Dot products of vectors (m, 3), as (m, 1)."""
    product: Floats = (a * b).sum(axis=1, keepdims=True)
    return product
