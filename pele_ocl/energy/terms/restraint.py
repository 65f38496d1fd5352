"""Harmonic restraints that hold atoms to positions in space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...atoms import Atoms, Floats, require_atoms
from ...common.arguments import atoms_chosen, number, positions_of, require_no_numbers_as_mask
from ...common.errors import InputError
from ...common.readonly import read_only
from .term import Term, TermContext

if TYPE_CHECKING:
    from ...opencl.binding import Launch


@dataclass(frozen=True, eq=False)
class PositionalRestraint(Term):
    """Harmonic positional restraint: the sum of k max(|x - x0| - flat, 0)^2 over the restrained atoms, kcal/mol.

    force_constant : k, kcal/mol/A^2, >= 0; the whole factor of the square, as in Amber
    reference : (n, 3) x0 of all atoms, A; by default the positions of the plan
    atoms : restrained atoms, a mask (n,) or indices; by default all
    flat : A, >= 0; no energy within this distance of x0
    name : of the term in results

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
        number("force_constant", self.force_constant, "a number of kcal/mol/A^2, 0 or more,", least=0)
        number("flat", self.flat, "a number of Angstrom, 0 or more,", least=0)
        # Copied, because a plan makes its buffers when it is first used, and again for each thread.
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
            raise InputError("the positions that atoms are restrained to lie far from the molecule; use float64")
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
        """k of each atom, (n,); 0 where it is free."""
        constants = np.zeros(len(atoms))
        if self.atoms is not None:
            require_no_numbers_as_mask("atoms to restrain", np.asarray(self.atoms), len(atoms))
        try:
            constants[slice(None) if self.atoms is None else np.asarray(self.atoms)] = self.force_constant
        except (IndexError, TypeError, ValueError):
            raise InputError(f"atoms to restrain are no mask of {len(atoms)} atoms and no indices of them") from None
        return constants
