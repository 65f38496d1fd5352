"""Collective variables: functions of positions, to which biases apply. docs/theory/sampling.md.

To add one, write a class here and a file in cl/energy/terms/variables with its value and derivatives.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...atoms import Atoms, Floats, Ints, selectable
from ...atoms.selection import Selection
from ...common.arguments import array, atoms_chosen, positions_of, require_no_numbers_as_mask
from ...common.errors import InputError
from ...common.readonly import read_only
from ...opencl.interface import VariableKind
from .internal import torsions_of


@dataclass(frozen=True, eq=False)
class Variable:
    """Collective variable of a molecule.

    kind : number of its kernel functions; unit : of its values; period : 0 if it is not periodic
    """

    kind: ClassVar[VariableKind]
    unit: ClassVar[str] = "A"
    period: ClassVar[float] = 0.0

    @abstractmethod
    def groups(self, atoms: Atoms) -> list[Ints]:
        """Return one or two groups of atoms. Raises InputError if they are invalid."""

    def traits(self, atoms: Atoms) -> Floats:
        """Return data of the atoms for kernels, (m, 4): weight in the group, and three numbers."""
        groups = self.groups(atoms)
        shares = [atoms.masses[of] / atoms.masses[of].sum() for of in groups]
        return np.column_stack([np.concatenate(shares), np.zeros((sum(map(len, groups)), 3))])

    @abstractmethod
    def value(self, positions: Floats, atoms: Atoms) -> tuple[float, Floats]:
        """Compute the value at positions (n, 3) A and its gradient (n, 3) in float64; this defines the variable."""


@dataclass(frozen=True, eq=False)
class TorsionVariable(Variable):
    """Torsion of four atoms, -pi to pi rad.

    atoms : four indices from 0, or four selections of one atom each, such as "resid 2 and name CA": docs/selection.md
    """

    kind: ClassVar[VariableKind] = VariableKind.TORSION
    unit: ClassVar[str] = "rad"
    period: ClassVar[float] = 2 * np.pi

    atoms: ArrayLike | Sequence[str | int]

    def __post_init__(self) -> None:
        given = self.atoms
        if isinstance(given, list | tuple) and any(isinstance(of, str) for of in given):
            if len(given) != 4 or not all(isinstance(of, str | int | np.integer) for of in given):
                raise InputError(f"atoms of a torsion are {list(given)}; expected four indices or selections")
            object.__setattr__(self, "atoms", tuple(given))
            return
        four = array("atoms of a torsion", given, "iu", "indices or four selections")
        if four.shape != (4,) or len(np.unique(four)) < 4:
            raise InputError(f"atoms of a torsion are {four.tolist()}; expected four different indices")
        object.__setattr__(self, "atoms", read_only(four, np.int64))

    def groups(self, atoms: Atoms) -> list[Ints]:
        if not isinstance(self.atoms, tuple):
            return [_within(np.asarray(self.atoms), atoms)]
        found = [_chosen(of if isinstance(of, str) else np.array([of]), atoms) for of in self.atoms]
        for given, of in zip(self.atoms, found, strict=True):
            if len(of) != 1:
                raise InputError(f"{given!r} selects {len(of)} atoms; each selection of a torsion must select one")
        four = np.concatenate(found)
        if len(np.unique(four)) < 4:
            raise InputError(f"atoms of a torsion are {four.tolist()}; expected four different ones")
        return [four]

    def value(self, positions: Floats, atoms: Atoms) -> tuple[float, Floats]:
        (four,) = self.groups(atoms)
        angles, slopes = torsions_of(positions[four][None])
        gradient = np.zeros_like(positions)
        gradient[four] = slopes[0]
        return float(angles[0]), gradient


@dataclass(frozen=True, eq=False)
class DistanceVariable(Variable):
    """Distance between two atoms, or between the centres of mass of two groups of atoms, A.

    first, second : each group as an index, indices, a mask or a selection, such as "resid 1 and not element H"
    """

    kind: ClassVar[VariableKind] = VariableKind.DISTANCE

    first: ArrayLike
    second: ArrayLike

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            _keep(self, name)

    def groups(self, atoms: Atoms) -> list[Ints]:
        first, second = (_chosen(of, atoms) for of in (self.first, self.second))
        if np.array_equal(first, second):
            raise InputError("a distance is between two different groups of atoms; these are the same")
        return [first, second]

    def value(self, positions: Floats, atoms: Atoms) -> tuple[float, Floats]:
        shares = np.zeros((2, len(atoms)))
        for share, of in zip(shares, self.groups(atoms), strict=True):
            share[of] = atoms.masses[of] / atoms.masses[of].sum()
        weights = shares[0] - shares[1]
        d = weights @ positions
        r = float(np.linalg.norm(d))
        return r, weights[:, None] * d / (r or 1.0)


@dataclass(frozen=True, eq=False)
class GyrationVariable(Variable):
    """Mass-weighted radius of gyration of a group of atoms, A.

    atoms : indices, a mask or a selection
    """

    kind: ClassVar[VariableKind] = VariableKind.GYRATION

    atoms: ArrayLike

    def __post_init__(self) -> None:
        _keep(self, "atoms")

    def groups(self, atoms: Atoms) -> list[Ints]:
        found = _chosen(self.atoms, atoms)
        if len(found) < 2:
            raise InputError(f"a radius of gyration has {len(found)} atom; expected 2 or more")
        return [found]

    def value(self, positions: Floats, atoms: Atoms) -> tuple[float, Floats]:
        (own,), gradient = self.groups(atoms), np.zeros_like(positions)
        shares = atoms.masses[own] / atoms.masses[own].sum()
        d = positions[own] - shares @ positions[own]
        r = float(np.sqrt(shares @ (d**2).sum(axis=1)))
        gradient[own] = shares[:, None] * d / (r or 1.0)
        return r, gradient


@dataclass(frozen=True, eq=False)
class RMSDVariable(Variable):
    """Root mean square deviation of a group of atoms from a reference after optimal superposition, A.

    atoms : indices, a mask or a selection
    reference : (n, 3) positions of all atoms, A; by default those of the molecule
    """

    kind: ClassVar[VariableKind] = VariableKind.RMSD

    atoms: ArrayLike
    reference: ArrayLike | None = None

    def __post_init__(self) -> None:
        _keep(self, "atoms")
        if self.reference is not None:
            object.__setattr__(self, "reference", read_only(positions_of(self.reference, "reference"), np.float64))

    def groups(self, atoms: Atoms) -> list[Ints]:
        found = _chosen(self.atoms, atoms)
        if len(found) < 3:
            raise InputError(f"an RMSD has {len(found)} atoms; expected 3 or more")
        return [found]

    def traits(self, atoms: Atoms) -> Floats:
        (own,) = self.groups(atoms)
        all_places = atoms.positions if self.reference is None else atoms.moved(self.reference).positions
        places = all_places[own]
        return np.column_stack([np.full(len(own), 1 / len(own)), places - places.mean(axis=0)])

    def value(self, positions: Floats, atoms: Atoms) -> tuple[float, Floats]:
        (own,), reference, gradient = self.groups(atoms), self.traits(atoms)[:, 1:], np.zeros_like(positions)
        d = positions[own] - positions[own].mean(axis=0)
        u, _, vt = np.linalg.svd(reference.T @ d)
        turn = np.diag([1, 1, np.sign(np.linalg.det(u @ vt))])
        away = d - reference @ u @ turn @ vt
        r = float(np.sqrt((away**2).sum() / len(own)))
        gradient[own] = away / (len(own) * (r or 1.0))
        return r, gradient


def _keep(variable: Variable, name: str) -> None:
    """Store the atoms of a variable read-only; selections are resolved when the molecule is known."""
    given = getattr(variable, name)
    if not isinstance(given, str):
        chosen = np.atleast_1d(atoms_chosen(name, given))
        object.__setattr__(variable, name, read_only(chosen, chosen.dtype))


def _within(chosen: Ints, atoms: Atoms) -> Ints:
    """Check indices. Raises InputError if the molecule does not have them."""
    if not len(chosen):
        raise InputError("a collective variable has no atoms; expected one or more")
    if chosen.min() < 0 or chosen.max() >= len(atoms):
        raise InputError(f"atoms of a collective variable must be of 0 to {len(atoms) - 1}")
    return chosen.astype(np.int32)


def _chosen(given: ArrayLike | str, atoms: Atoms) -> Ints:
    """Return the unique indices of a selection, a mask or indices."""
    of = Selection(given).mask(selectable(atoms)) if isinstance(given, str) else np.asarray(given)
    require_no_numbers_as_mask("atoms of a collective variable", of, len(atoms))
    if of.dtype == bool:
        if of.shape != (len(atoms),):
            raise InputError(f"a mask of atoms has shape {of.shape}; expected ({len(atoms)},)")
        of = np.flatnonzero(of)
    return _within(np.unique(of), atoms)


def checked_variables(given: Variable | Sequence[Variable]) -> tuple[Variable, ...]:
    """Return one to three collective variables as a tuple. Raises InputError for anything else."""
    found = (given,) if isinstance(given, Variable) else tuple(given) if isinstance(given, list | tuple) else ()
    if not 1 <= len(found) <= 3 or not all(isinstance(of, Variable) for of in found):
        raise InputError("a bias acts on one to three collective variables, such as TorsionVariable([4, 6, 8, 14])")
    return found
