"""Masses, frozen atoms and constrained bonds to hydrogen of a molecule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..atoms.radii import elements_of
from ..common.arguments import number
from ..common.errors import InputError
from ..minimize.constraints import BondConstraints, check_rigid

CONSTRAINTS = ("hbonds",)
MOST_MEMBERS = 5  # per cluster: an atom and four hydrogens


@dataclass(frozen=True, eq=False)
class Body:
    """Atoms of a molecule in clusters: an atom and the hydrogens with a constrained bond to it.

    starts : (c + 1,) first member of each cluster; members : (n,) atoms
    lengths : (n,) A, length of a hydrogen's constrained bond, 0 for other members
    masses : (n,) Da; free : (n,) mask of moving atoms
    constraints : None if no bonds are constrained
    """

    starts: Ints
    members: Ints
    lengths: Floats
    masses: Floats
    free: NDArray[np.bool_]
    constraints: BondConstraints | None

    @classmethod
    def of(cls, atoms: Atoms, masses: Floats, free: NDArray[np.bool_], holds: bool) -> Body:
        """Divide a molecule into clusters. holds : whether bonds to hydrogen are constrained

        Raises InputError if bonds or lengths are missing, or an atom has too many hydrogens.
        """
        constraints = BondConstraints.of(atoms, free, "hbonds") if holds and _has_hydrogens(atoms, free) else None
        check_rigid(atoms, free, constraints)
        owners, lengths = np.arange(len(atoms)), np.zeros(len(atoms))
        if constraints is not None:
            counts = np.diff(constraints.starts)
            if counts.max() >= MOST_MEMBERS:
                owner = atoms.describe(int(constraints.heavy[np.argmax(counts)]))
                raise InputError(f"{owner} has more than {MOST_MEMBERS - 1} hydrogens; leave out constraints")
            owners[constraints.hydrogens] = np.repeat(constraints.heavy, counts)
            lengths[constraints.hydrogens] = constraints.lengths
        members: Ints = np.lexsort((lengths > 0, owners)).astype(
            np.int32
        )  # an atom before its hydrogens, which have lengths
        _, starts = np.unique(owners[members], return_index=True)
        return cls(np.append(starts, len(atoms)), members, lengths[members], masses, free, constraints)

    @property
    def freedom(self) -> int:
        """Number of degrees of freedom: three per moving atom, minus the constrained bonds."""
        held = 0 if self.constraints is None else len(self.constraints.hydrogens)
        return 3 * int(self.free.sum()) - held

    @property
    def inverse_masses(self) -> Floats:
        """Inverse masses, (n,) 1/Da; 0 for frozen atoms and virtual sites."""
        return np.divide(1.0, self.masses, out=np.zeros(len(self.masses)), where=self.free)


def _has_hydrogens(atoms: Atoms, free: NDArray[np.bool_]) -> bool:
    """Return whether any moving atom is a hydrogen. Raises InputError if elements are unknown."""
    if atoms.labels is None:
        raise InputError("bonds to hydrogen need elements, which these atoms do not have; leave out constraints")
    return bool((free & (elements_of(atoms.labels) == "H")).any())


def masses_of(atoms: Atoms, hydrogen_mass: float | None) -> Floats:
    """Return the atomic masses, (n,) Da, optionally with mass moved from heavy atoms to their hydrogens.

    hydrogen_mass : Da; None leaves the masses unchanged

    Raises InputError for an unknown element, and if a heavy atom would become too light.
    """
    masses = atoms.masses
    if hydrogen_mass is None:
        return masses
    wanted = number("hydrogen_mass", hydrogen_mass, "a mass of 1 to 10 Da", least=1.0, most=10.0)
    assert atoms.labels is not None
    is_hydrogen = elements_of(atoms.labels) == "H"
    bonds = np.unique(np.sort(atoms.bond_pairs, axis=1), axis=0)
    ends = np.where(is_hydrogen[bonds[:, :1]], bonds[:, ::-1], bonds)  # the heavy atom first
    heavy, hydrogens = ends[~is_hydrogen[ends[:, 0]] & is_hydrogen[ends[:, 1]]].T
    _, first = np.unique(hydrogens, return_index=True)  # a hydrogen bonded to two atoms takes mass from one of them
    heavy, hydrogens = heavy[first], hydrogens[first]
    found = masses.copy()
    np.subtract.at(found, heavy, wanted - masses[hydrogens])
    found[hydrogens] = wanted
    light = np.flatnonzero((found < 1.0) & ~atoms.is_site)
    if len(light):
        raise InputError(
            f"hydrogens of {wanted:g} Da leave {atoms.describe(int(light[0]))} {found[light[0]]:.2f} Da; use a "
            "smaller hydrogen_mass"
        )
    return found
