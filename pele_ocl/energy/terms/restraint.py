"""Harmonic restraints of atoms, or of the centre of mass of a group, to positions in space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...atoms import Atoms, Floats, Ints, require_atoms
from ...common.arguments import atoms_chosen, atoms_mask, number, numbers, positions_of, require_no_numbers_as_mask
from ...common.errors import InputError
from ...common.readonly import read_only
from .term import Term, TermContext

if TYPE_CHECKING:
    from ...opencl.binding import Launch


@dataclass(frozen=True, eq=False)
class PositionalRestraint(Term):
    """Harmonic positional restraint: the sum of k max(|x - x0| - flat, 0)^2 over the restrained atoms, kcal/mol.

    force_constant : k, kcal/mol/A^2, >= 0; without a factor of 1/2, as in Amber
    reference : (n, 3) x0 of all atoms, A; by default the positions of the plan
    atoms : restrained atoms, a mask (n,) or indices; by default all
    flat : A, >= 0; the energy is 0 within this distance of x0
    name : name of the term in results

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> held = pele_ocl.PositionalRestraint(10.0, reference=atoms.positions)
    >>> result = pele_ocl.energy(atoms.moved(atoms.positions + 0.1), terms=[held])
    >>> round(result.restraint, 2)  # 10 * 33 * 0.03
    9.9
    """

    movable: ClassVar[bool] = False

    force_constant: float
    reference: ArrayLike | None = None
    atoms: ArrayLike | None = None
    flat: float = 0.0
    name: str = "restraint"

    def __post_init__(self) -> None:
        number("force_constant", self.force_constant, "a number in kcal/mol/A^2, 0 or more", least=0)
        number("flat", self.flat, "a number in Angstrom, 0 or more", least=0)
        # Copied, since a plan makes its buffers at first use, and again for each thread.
        if self.reference is not None:
            object.__setattr__(self, "reference", read_only(positions_of(self.reference, "reference"), np.float64))
        if self.atoms is not None:
            chosen = atoms_chosen("atoms to restrain", self.atoms)
            object.__setattr__(self, "atoms", read_only(chosen, chosen.dtype))

    def check(self, atoms: Atoms) -> None:
        require_atoms(atoms)
        self._references(atoms)
        self._constants(atoms)

    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        require_atoms(atoms)
        away, constants = atoms.positions - self._references(atoms), self._constants(atoms)
        r = np.linalg.norm(away, axis=1)
        beyond = np.maximum(r - self.flat, 0)
        return constants * beyond**2, (2 * constants * beyond / np.where(r > 0, r, 1))[:, None] * away

    def stiffness(self, atoms: Atoms) -> Floats | float:
        require_atoms(atoms)
        return 0.0 if self.flat else 2 * self._constants(atoms)

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, encoding, atoms = context.queue, context.encoding, context.atoms
        shifted = self._references(atoms) - encoding.shift(*atoms.bounds())
        if np.abs(shifted - encoding.base).max() > encoding.reach:
            raise InputError("the reference positions are far from the molecule; use float64")
        references = np.empty(shifted.shape, encoding.dtype)
        encoding.encode(shifted, references)
        context.buffers[f"reference of {self.name}"] = there = queue.upload_each(references, encoding.dtype)
        context.buffers[f"constants of {self.name}"] = constants = queue.upload_each(self._constants(atoms))
        arguments = dict(references=there, constants=constants, flat=self.flat)
        return [context.bind("energy/terms/restraint.cl", "restrain", index, arguments)]

    def _references(self, atoms: Atoms) -> Floats:
        """x0 of all atoms, (n, 3)."""
        return atoms.positions if self.reference is None else atoms.moved(self.reference).positions

    def _constants(self, atoms: Atoms) -> Floats:
        """k of each atom, (n,); 0 if it is not restrained."""
        constants = np.zeros(len(atoms))
        if self.atoms is not None:
            require_no_numbers_as_mask("atoms to restrain", np.asarray(self.atoms), len(atoms))
        try:
            constants[slice(None) if self.atoms is None else np.asarray(self.atoms)] = self.force_constant
        except (IndexError, TypeError, ValueError):
            raise InputError(
                f"atoms to restrain are neither a mask of {len(atoms)} atoms nor indices of them"
            ) from None
        return constants


@dataclass(frozen=True, eq=False)
class CenterRestraint(Term):
    """Harmonic restraint of the centre of mass of a group of atoms: k max(|c - c0| - flat, 0)^2, kcal/mol.

    atoms : mask (n,) or indices of the atoms, such as a ligand's
    target : (3,) c0, A; by default the centre at the positions of the plan
    force_constant : k, kcal/mol/A^2, >= 0; without a factor of 1/2
    flat : A, >= 0; the energy is 0 within this distance of c0
    weights : of the atoms, >= 0; by default their masses
    name : name of the term in results

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> held = pele_ocl.CenterRestraint(range(12), force_constant=1.0, target=[0.0, 0.0, 0.0])
    >>> "center_restraint" in pele_ocl.energy(atoms, terms=[held]).terms.names
    True
    """

    movable: ClassVar[bool] = False

    atoms: ArrayLike
    force_constant: float
    target: ArrayLike | None = None
    flat: float = 0.0
    weights: ArrayLike | None = None
    name: str = "center_restraint"

    def __post_init__(self) -> None:
        number("force_constant", self.force_constant, "a number in kcal/mol/A^2, 0 or more", least=0)
        number("flat", self.flat, "a number in Angstrom, 0 or more", least=0)
        chosen = atoms_chosen("atoms to restrain", self.atoms)
        object.__setattr__(self, "atoms", read_only(chosen, chosen.dtype))
        for name, shape in (("target", (3,)), ("weights", None)):
            if getattr(self, name) is None:
                continue
            values = numbers(name, getattr(self, name))
            if not np.isfinite(values).all() or (shape and values.shape != shape):
                raise InputError(f"{name} has shape {values.shape}; expected finite numbers {shape or ''}")
            object.__setattr__(self, name, read_only(values, np.float64))

    def check(self, atoms: Atoms) -> None:
        require_atoms(atoms)
        self._members(atoms)

    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        require_atoms(atoms)
        members, weights = self._members(atoms)
        away = weights @ atoms.positions[members] - self._target(atoms)
        r = float(np.linalg.norm(away))
        beyond = max(r - self.flat, 0.0)
        energies, gradient = np.zeros(len(atoms)), np.zeros((len(atoms), 3))
        energies[members] = weights * self.force_constant * beyond**2
        gradient[members] = 2 * self.force_constant * beyond / (r or 1.0) * weights[:, None] * away
        return energies, gradient

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, encoding, atoms = context.queue, context.encoding, context.atoms
        fine = queue.dtype if encoding.is_fixed else np.dtype(np.float64)
        members, weights = self._members(atoms)
        of_atoms = np.zeros(len(atoms))
        of_atoms[members] = weights
        origin = encoding.shift(*atoms.bounds()) + encoding.base
        parameters = np.append(self.force_constant, self._target(atoms) - origin)[np.newaxis]
        there = context.buffers[f"parameters of {self.name}"] = queue.upload_each(parameters, fine)
        arguments = dict(
            n_members=len(members), members=queue.upload(members, np.int32), weights=queue.upload(of_atoms, fine),
            parameters=there, flat=self.flat,
        )  # fmt: skip
        return [context.bind("energy/terms/center.cl", "restrain_center", index, arguments)]

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of the target."""
        return (3,)

    def check_targets(self, targets: Floats) -> None:
        """Do nothing: any target is valid."""

    def put_targets(self, targets: Floats, parameters: NDArray[Any], origin: Floats) -> None:
        """Store a target (3,) A in kernel parameters (1, 4). origin : (3,) A, of positions on the device"""
        parameters[0, 1:] = targets - origin

    def targets_of(self, parameters: NDArray[Any], origin: Floats) -> Floats:
        """Return the target (3,) A stored in kernel parameters (1, 4)."""
        return np.asarray(parameters[0, 1:] + origin, np.float64)

    def _members(self, atoms: Atoms) -> tuple[Ints, Floats]:
        """Atoms (m,) of the group and their normalized weights (m,)."""
        chosen = atoms_mask("atoms to restrain", self.atoms, len(atoms))
        members = np.flatnonzero(chosen).astype(np.int32)
        weights = atoms.masses[members] if self.weights is None else np.asarray(self.weights, np.float64)
        if weights.shape != members.shape or (weights < 0).any() or not weights.sum() > 0:
            raise InputError(f"weights must be a number for each of {len(members)} atoms, 0 or more, and not all 0")
        shares: Floats = weights / weights.sum()
        return members, shares

    def _target(self, atoms: Atoms) -> Floats:
        """c0, (3,)."""
        members, weights = self._members(atoms)
        target: ArrayLike = weights @ atoms.positions[members] if self.target is None else self.target
        return np.asarray(target, np.float64)
