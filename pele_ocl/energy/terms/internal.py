"""Harmonic restraints of internal coordinates: the common part of distances and torsions."""

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
    """Harmonic restraints of an internal coordinate with a flat bottom; docs/theory/restraints.md.

    members : how many atoms the coordinate has
    units : its unit, and the force constant's
    targets : the smallest and the largest target, and the words for that
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
            raise InputError(f"atoms to restrain have shape {atoms.shape}; (m, {self.members}) is needed")
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
        """Raise InputError for targets (m,) that there cannot be."""
        least, most, bound = self.targets
        if not _fit(targets, least, most):
            raise InputError(f"targets must be numbers of {self.units[0]}{bound}")

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of the targets, (m,)."""
        return (len(self._atoms()),)

    @abstractmethod
    def put_targets(self, targets: Floats, parameters: NDArray[Any], origin: Floats) -> None:
        """Store targets (m,) in parameters (m, 4) for the kernel. origin : (3,) A of positions, not used"""

    @abstractmethod
    def targets_of(self, parameters: NDArray[Any], origin: Floats) -> Floats:
        """Return the targets (m,) of parameters (m, 4)."""

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
        """Measure how far coordinates of positions (m, members, 3) are from their targets (m,), and their slopes."""

    @abstractmethod
    def _parameters(self) -> Floats:
        """Parameters of each restraint for the kernel, (m, 4)."""


def _fit(values: Floats, least: float, most: float) -> bool:
    """Return whether values are numbers within bounds."""
    return bool((np.isfinite(values) & (values >= least) & (values <= most)).all())
