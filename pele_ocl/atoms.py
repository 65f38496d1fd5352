"""Atoms: positions and force-field parameters as NumPy arrays, validated once and then read-only."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arguments import described
from .errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Strings = NDArray[np.str_]


def _frozen(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A C-contiguous copy that nobody can write to."""
    array = np.array(values, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Labels:
    """What a structure file calls its atoms; every array has shape (n,).

    names : atom names without blanks ("CA", "HB2", "O3'")
    elements : element symbols ("C", "Cl"); "X" where unknown
    residue_names, residue_numbers, insertion_codes, chains : as in the file; "" where blank
    residue_index : number of the residue, from 0, in the order of the file; the same for all atoms of one residue
    """

    names: Strings
    elements: Strings
    residue_names: Strings
    residue_numbers: Ints
    insertion_codes: Strings
    chains: Strings
    residue_index: Ints

    def __post_init__(self) -> None:
        kinds = {"residue_numbers": np.int32, "residue_index": np.int32}
        for f in fields(self):
            object.__setattr__(self, f.name, _frozen(getattr(self, f.name), kinds.get(f.name, np.str_)))
        lengths = {f.name: len(getattr(self, f.name)) for f in fields(self)}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the labels have different lengths: {lengths}")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Labels({len(self):,} atoms, {len(self.residue_starts):,} residues)"

    @cached_property
    def residue_starts(self) -> Ints:
        """First atom of each residue, (n_residues,)."""
        return _frozen(np.flatnonzero(np.diff(self.residue_index, prepend=self.residue_index[:1] - 1)), np.int32)

    def residue(self, i: int) -> str:
        """The residue of atom i as people write it: `A:ALA5`, with the insertion code if it has one."""
        chain = f"{self.chains[i]}:" if self.chains[i] else ""
        return f"{chain}{self.residue_names[i]}{self.residue_numbers[i]}{self.insertion_codes[i]}"

    def atom(self, i: int) -> str:
        """Atom i as people write it: `A:ALA5:CA`."""
        return f"{self.residue(i)}:{self.names[i]}"


@dataclass(frozen=True, eq=False)
class Structure:
    """A model as a file holds it, before any force field: n atoms in residues, residues in segments.

    positions : (n, 3) A
    labels : Labels of the n atoms
    segments : (n_residues,) number of the chain piece a residue belongs to, from 0; a TER record, a new chain
        identifier or the change from polymer to HETATM groups starts a new one
    hetero : (n_residues,) True where the file marks the residue HETATM
    lines : (n,) line of each atom in the file, from 1; 0 where a format has no lines
    source : the file's name, for messages
    notes : sentences about what was chosen where the file holds several: a model, alternate locations
    """

    positions: Floats
    labels: Labels
    segments: Ints
    hetero: NDArray[np.bool_]
    lines: Ints
    source: str
    notes: tuple[str, ...] = ()

    def where(self, i: int) -> str:
        """Where atom i stands, for messages: `protein.pdb:41 (A:ALA5:CA)`."""
        line = f":{self.lines[i]}" if self.lines[i] else ""
        return f"{self.source}{line} ({self.labels.atom(i)})"


_PARAMETERS = ("lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")


@dataclass(frozen=True, eq=False)
class Atoms:
    """n atoms with everything the energy functions need.

    positions : (n, 3) A
    charges : (n,) e
    lj_sigma, lj_epsilon : (n,) A and kcal/mol, Lennard-Jones E = 4 epsilon ((sigma/r)^12 - (sigma/r)^6)
    gb_radii : (n,) A, intrinsic Born radii before the offset is taken off
    gb_scales : (n,) HCT overlap scales, dimensionless
    labels : Labels, optional
    bonds : (m, 2) pairs of atom indices, from 0, optional
    combining : rule for the sigma of a pair, "arithmetic" (Amber) or "geometric" (OPLS)
    one_four : (Coulomb, Lennard-Jones) scale of 1-4 pairs
    notes : sentences about what was read and how the parameters were found that a careful user wants to read

    Parameters that a calculation does not need may be left out; a function that needs them says so. The arrays are
    copied to float64 and made read-only. Raises InputError for unequal lengths, values that are not finite, negative
    radii or bonds to atoms that do not exist.
    """

    positions: Floats
    charges: Floats
    lj_sigma: Floats | None = None
    lj_epsilon: Floats | None = None
    gb_radii: Floats | None = None
    gb_scales: Floats | None = None
    labels: Labels | None = None
    bonds: Ints = field(default_factory=lambda: np.empty((0, 2), np.int32))
    combining: Literal["arithmetic", "geometric"] = "arithmetic"
    one_four: tuple[float, float] = (1 / 1.2, 1 / 2)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        positions = self._array("positions", self.positions)
        if positions.ndim != 2 or positions.shape[1] != 3:
            raise InputError(f"positions have shape {positions.shape}; (n, 3) is needed")
        object.__setattr__(self, "positions", positions)
        if self.labels is not None and len(self.labels) != len(self):
            raise InputError(f"{len(self.labels)} labels for {len(self)} atoms")
        self._check_finite("positions", positions)
        for name in ("charges", *_PARAMETERS):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._checked(name))
        object.__setattr__(self, "bonds", self._checked_bonds())
        if self.combining not in ("arithmetic", "geometric"):
            raise InputError(f"combining is {self.combining!r}; choose 'arithmetic' or 'geometric'")

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        residues = "" if self.labels is None else f", {len(self.labels.residue_starts):,} residues"
        missing = [name for name in _PARAMETERS if getattr(self, name) is None]
        without = f", without {' and '.join(missing)}" if missing else ""
        charge = f"net charge {self.charges.sum():+.3f} e"
        return f"Atoms({len(self):,} atoms{residues}, {len(self.bonds):,} bonds, {charge}{without})"

    def describe(self, i: int) -> str:
        """Atom i for messages: its label where there is one, its index always."""
        return f"atom {i} ({self.labels.atom(i)})" if self.labels is not None else f"atom {i}"

    def require(self, names: Sequence[str], purpose: str) -> None:
        """Raise InputError unless the named parameter arrays are there and there is at least one atom."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise InputError(f"{purpose} needs {' and '.join(missing)}, which these atoms lack")
        if len(self) == 0:
            raise InputError(f"{purpose} needs at least one atom; there is none")

    def moved(self, positions: ArrayLike) -> Atoms:
        """The same atoms at other positions (n, 3) A, which alone are checked: many times faster than `replace`.

        Raises InputError for another shape and for positions that are not finite.
        """
        there = self._array("positions", positions)
        if there.shape != self.positions.shape:
            raise InputError(f"positions have shape {there.shape}; ({len(self)}, 3) is needed")
        self._check_finite("positions", there)
        atoms = copy(self)
        object.__setattr__(atoms, "positions", there)
        return atoms

    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest x, y and z, (3,) A each."""
        columns = np.ascontiguousarray(self.positions.T)  # ten times faster to look through
        return columns.min(axis=1), columns.max(axis=1)

    def require_apart(self, distance: float = 1e-4) -> None:
        """Raise InputError where two atoms are closer than `distance` (A): no energy is defined at r = 0."""
        pair = close_pair(self.positions, distance)
        if pair is not None:
            i, j = sorted(pair)
            raise InputError(f"{self.describe(i)} and {self.describe(j)} stand at the same place; remove one of them")

    def _checked(self, name: str) -> Floats:
        values = self._array(name, getattr(self, name))
        if values.shape != (len(self),):
            raise InputError(f"{name} has shape {values.shape}; ({len(self)},) is needed, one value an atom")
        self._check_finite(name, values)
        if name != "charges" and np.any(values < 0):
            i = int(np.argmax(values < 0))
            raise InputError(f"{name} of {self.describe(i)} is {values[i]:g}; it cannot be negative")
        return values

    @staticmethod
    def _array(name: str, values: ArrayLike) -> Floats:
        try:
            return _frozen(values, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} are not an array of numbers: {error}") from error

    def _check_finite(self, name: str, values: Floats) -> None:
        good = np.isfinite(values)
        if not good.all():
            i = int(np.argwhere(~good)[0, 0])
            raise InputError(f"{name} of {self.describe(i)} is {values[i]}; a finite number is needed")

    def _checked_bonds(self) -> Ints:
        given = np.asarray(self.bonds)
        if given.size == 0:
            return _frozen(np.empty((0, 2)), np.int32)
        bonds = _frozen(given, np.int32)
        if not np.array_equal(bonds, given):
            raise InputError("bonds are not whole numbers; atom indices from 0 are needed")
        if bonds.ndim != 2 or bonds.shape[1] != 2:
            raise InputError(f"bonds have shape {bonds.shape}; (m, 2) is needed")
        if bonds.min() < 0 or bonds.max() >= len(self):
            stray = bonds.min() if bonds.min() < 0 else bonds.max()
            raise InputError(f"a bond names atom {stray}; the atoms are 0 to {len(self) - 1}")
        if np.any(bonds[:, 0] == bonds[:, 1]):
            raise InputError(f"a bond joins atom {bonds[bonds[:, 0] == bonds[:, 1]][0, 0]} to itself")
        return bonds


def require_atoms(atoms: object) -> None:
    """Raise InputError for anything but Atoms: a path, an array of positions."""
    if not isinstance(atoms, Atoms):
        raise InputError(
            f"atoms are {described(atoms)}; Atoms are needed: read('protein.pdb'), or Atoms(positions=..., charges=...)"
        )


# Directions at right angles to each other and aslant to the axes; along each of them close points are close, too.
LINES = np.array([[2, 3, 6], [3, -6, 2], [6, 2, -3]]) / 7


def close_pair(positions: Floats, distance: float) -> tuple[int, int] | None:
    """Two points closer than `distance`, or None. positions : (n, 3) A"""
    candidates = np.arange(len(positions))
    for line in LINES:
        candidates = candidates[_neighboured(np.take(positions, candidates, axis=0) @ line, distance)]
    # Two points that close share a cell of twice that edge in one of the eight grids half a cell apart.
    points = positions[candidates]
    for shift in np.ndindex(2, 2, 2):
        cells = np.floor(points / (2 * distance) + np.array(shift) / 2)
        order = np.lexsort(cells.T)
        for lag in range(1, len(order)):
            first, second = order[:-lag], order[lag:]
            together = (cells[first] == cells[second]).all(axis=1)
            if not together.any():
                break
            first, second = first[together], second[together]
            close = np.linalg.norm(points[first] - points[second], axis=1) < distance
            if close.any():
                return int(candidates[first[close][0]]), int(candidates[second[close][0]])
    return None


def _neighboured(along: Floats, distance: float) -> NDArray[np.intp]:
    """Points whose projection on a line has another one within the distance: all that can be close to another point."""
    order = np.argsort(along)
    near = np.diff(along[order]) < 1.001 * distance
    return order[np.append(near, False) | np.insert(near, 0, False)] if len(order) > 1 else order[:0]
