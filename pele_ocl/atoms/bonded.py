"""Bonded terms of a force field as tables of atoms and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..common import arguments
from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays, read_only
from .labels import Floats, Ints

MOST_WAVES = 100  # highest periodicity of a torsion


@dataclass(frozen=True, eq=False)
class TermTable(ReadOnlyArrays):
    """m terms of one kind with their atoms and parameters; base class of all kinds.

    atoms : (m, n_members) atom indices, from 0
    parameters : (m, n_parameters), in the order of `names`

    Raises InputError for other shapes, values that are not finite, and terms with a repeated atom.
    """

    n_members: ClassVar[int]
    names: ClassVar[tuple[str, ...]]
    kind: ClassVar[str]  # for messages

    # None means no terms; __post_init__ replaces it by empty arrays.
    atoms: Ints = None  # type: ignore[assignment]
    parameters: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        atoms = np.empty((0, self.n_members), np.int32) if self.atoms is None else self.atoms
        parameters = np.empty((0, len(self.names))) if self.parameters is None else self.parameters
        atoms = arguments.array(f"atoms of the {self.kind}", atoms, "iu", "atom indices")
        parameters = arguments.numbers(f"parameters of the {self.kind}", parameters)
        if atoms.shape != (len(parameters), self.n_members) or parameters.shape != (len(atoms), len(self.names)):
            raise InputError(
                f"the {self.kind} have atoms of shape {atoms.shape} and parameters of shape {parameters.shape}; "
                f"expected (m, {self.n_members}) and (m, {len(self.names)})"
            )
        if not np.isfinite(parameters).all():
            k, p = np.argwhere(~np.isfinite(parameters))[0]
            raise InputError(f"{self.names[p]} of number {k} of the {self.kind} is {parameters[k, p]}; give a number")
        if self.n_members < 8 and (twice := names_twice(atoms)).any():  # the two torsions of a CMAP share atoms
            raise InputError(f"number {np.argmax(twice)} of the {self.kind} names an atom twice")
        object.__setattr__(self, "atoms", read_only(atoms, np.int32))
        object.__setattr__(self, "parameters", read_only(parameters, np.float64))

    def __len__(self) -> int:
        return len(self.atoms)

    def of_atoms(self, places: NDArray[np.int32]) -> TermTable:
        """Return the terms among the kept atoms. places : (n,) new index of each atom, -1 for removed ones"""
        atoms = places[self.atoms].reshape(-1, self.n_members)
        kept = np.logical_and.reduce([column >= 0 for column in atoms.T])
        return replace(self, atoms=atoms[kept], parameters=self.parameters[kept])


class Bonds(TermTable):
    """E = k (r - r0)^2: k kcal/mol/A^2, r0 A."""

    kind, n_members, names = "bonds", 2, ("k", "r0")


class UreyBradley(TermTable):
    """E = k (r - r0)^2 between the outer atoms of an angle: k kcal/mol/A^2, r0 A."""

    kind, n_members, names = "Urey-Bradley terms", 2, ("k", "r0")


class Angles(TermTable):
    """E = k (theta - theta0)^2: k kcal/mol/rad^2, theta0 rad."""

    kind, n_members, names = "angles", 3, ("k", "theta0")


class Torsions(TermTable):
    """E = k (1 + cos(n phi - phase)): k kcal/mol, integer n, phase rad; phi is 0 for cis."""

    kind, n_members, names = "torsions", 4, ("k", "n", "phase")

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.parameters[:, 1]
        if (wrong := (n != np.rint(n)) | (np.abs(n) > MOST_WAVES)).any():
            k = np.argmax(wrong)
            raise InputError(
                f"n of number {k} of the {self.kind} is {n[k]:g}; expected a whole number, at most {MOST_WAVES}"
            )


class Impropers(Torsions):
    """Improper torsions, with the same formula as Torsions and a separate energy term."""

    kind = "impropers"


class HarmonicImpropers(TermTable):
    """E = k (phi - phi0)^2 with phi - phi0 wrapped to [-pi, pi], as in CHARMM: k kcal/mol/rad^2, phi0 rad."""

    kind, n_members, names = "harmonic impropers", 4, ("k", "phi0")


class OneFourPairs(TermTable):
    """1-4 pairs with explicit, already scaled parameters: charge product e^2, sigma A, epsilon kcal/mol.

    The charge products q are independent of Atoms.charges.
    E = C q / (eps_in r) + 4 epsilon ((sigma/r)^12 - (sigma/r)^6)
    """

    kind, n_members, names = "1-4 pairs", 2, ("charge_product", "sigma", "epsilon")


class LennardJonesPairs(TermTable):
    """Pairs with specific Lennard-Jones parameters (NBFIX): sigma A, epsilon kcal/mol.

    They replace the combined parameters of the two atoms. Coulomb and GB energies of these pairs do not change.
    """

    kind, n_members, names = "Lennard-Jones pairs", 2, ("sigma", "epsilon")


class CMaps(TermTable):
    """CMAP energies of two torsions with four atoms each; `map` is an index into Bonded.maps."""

    kind, n_members, names = "CMAP terms", 8, ("map",)


@dataclass(frozen=True, eq=False)
class Bonded(ReadOnlyArrays):
    """Bonded terms of a molecule, and the pairs of atoms excluded from the nonbonded interactions.

    bonds, angles, torsions, impropers, harmonic_impropers, urey_bradley, cmaps : tables of terms
    maps : maps of the CMAP terms, (s, s) kcal/mol each; element [a, b] is the energy at torsions of 2 pi a / s and 2 pi
        b / s
    one_four : 1-4 pairs, whose parameters replace the normal Lennard-Jones and Coulomb interactions
    excluded : (k, 2) pairs without Lennard-Jones and Coulomb interactions; pairs in `one_four` need not be repeated
        here
    lj_pairs : pairs with specific Lennard-Jones parameters (NBFIX), which must not be excluded or 1-4 pairs

    Raises InputError for pairs of an atom with itself, duplicate pairs, negative sigma, Lennard-Jones pairs that are
    excluded, and missing maps.
    """

    bonds: Bonds = field(default_factory=Bonds)
    angles: Angles = field(default_factory=Angles)
    torsions: Torsions = field(default_factory=Torsions)
    impropers: Impropers = field(default_factory=Impropers)
    harmonic_impropers: HarmonicImpropers = field(default_factory=HarmonicImpropers)
    urey_bradley: UreyBradley = field(default_factory=UreyBradley)
    cmaps: CMaps = field(default_factory=CMaps)
    maps: tuple[Floats, ...] = ()
    one_four: OneFourPairs = field(default_factory=OneFourPairs)
    excluded: Ints = field(default_factory=lambda: np.empty((0, 2), np.int32))
    lj_pairs: LennardJonesPairs = field(default_factory=LennardJonesPairs)

    def __post_init__(self) -> None:
        excluded = arguments.array("excluded", self.excluded, "iu", "pairs of atom indices").reshape(-1, 2)
        if (excluded[:, 0] == excluded[:, 1]).any():
            raise InputError("an excluded pair is of an atom with itself")
        for table in (self.one_four, self.lj_pairs):
            _check_pairs(table)
        if len(self.lj_pairs):
            left_out = np.concatenate([excluded, self.one_four.atoms])
            if (again := np.isin(pair_codes(self.lj_pairs.atoms), pair_codes(left_out))).any():
                i, j = self.lj_pairs.atoms[np.argmax(again)]
                raise InputError(
                    f"the Lennard-Jones pairs name the atoms {i} and {j}, which are excluded or a 1-4 pair"
                )
        object.__setattr__(self, "excluded", read_only(excluded, np.int32))
        object.__setattr__(self, "maps", tuple(read_only(arguments.numbers("maps", m), np.float64) for m in self.maps))
        for m in self.maps:
            if m.ndim != 2 or m.shape[0] != m.shape[1] or len(m) < 2:
                raise InputError(f"a CMAP map has shape {m.shape}; expected (s, s)")
        if len(self.cmaps):
            numbers = self.cmaps.parameters[:, 0]
            if not np.isin(numbers, np.arange(len(self.maps))).all():
                raise InputError(f"a CMAP term names a map that does not exist; there are {len(self.maps)}")

    def tables(self) -> Iterator[tuple[str, TermTable]]:
        """Yield the name and the table of each kind of term."""
        for f in fields(self):
            table = getattr(self, f.name)
            if isinstance(table, TermTable):
                yield f.name, table

    def require_atoms(self, n_atoms: int) -> None:
        """Raise InputError for terms of atoms that do not exist."""
        named = [*self.tables()]
        for what, atoms in [*((table.kind, table.atoms) for _, table in named), ("excluded pairs", self.excluded)]:
            if atoms.size and (atoms.min() < 0 or atoms.max() >= n_atoms):
                stray = atoms.min() if atoms.min() < 0 else atoms.max()
                raise InputError(f"the {what} name atom {stray}; the atoms are 0 to {n_atoms - 1}")

    def of_atoms(self, places: NDArray[np.int32]) -> Bonded:
        """Return the terms among the kept atoms. places : (n,) new index of each atom, -1 for removed ones"""
        tables = {name: table.of_atoms(places) for name, table in self.tables()}
        excluded = places[self.excluded].reshape(-1, 2)
        return replace(self, excluded=excluded[(excluded >= 0).all(axis=1)], **tables)  # type: ignore[arg-type]


def pair_codes(pairs: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return an integer for each pair (k, 2) that does not depend on the order of its atoms."""
    i, j = pairs.astype(np.int64).T
    codes: NDArray[np.int64] = np.minimum(i, j) * 2**32 + np.maximum(i, j)
    return codes


def names_twice(atoms: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask (m,) of the rows of atoms (m, k) that contain an atom twice."""
    twice = np.zeros(len(atoms), np.bool_)
    for first, second in combinations(atoms.T, 2):
        twice |= first == second
    return twice


def _check_pairs(table: OneFourPairs | LennardJonesPairs) -> None:
    """Raise InputError for duplicate pairs and for negative sigma."""
    sigma = table.parameters[:, table.names.index("sigma")]
    codes = np.sort(pair_codes(table.atoms))
    if (again := codes[1:] == codes[:-1]).any():
        i, j = divmod(int(codes[np.argmax(again)]), 2**32)
        raise InputError(f"the {table.kind} name the atoms {i} and {j} more than once; give each pair once")
    if (sigma < 0).any():
        k = np.argmax(sigma < 0)
        raise InputError(f"sigma of number {k} of the {table.kind} is {sigma[k]:g}; it cannot be negative")
