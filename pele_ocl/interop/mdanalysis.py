"""MDAnalysis' universes as Atoms, at the frame where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Ints, Structure, given_default_radii
from ..common.arguments import described
from ..common.errors import InputError
from ..common.extras import extra
from ..forcefield import ForceField
from ..forcefield.openmm.gb_forces import DEFAULT_SET
from ..formats.assembly import structure
from ..formats.mdanalysis import column, records_of_group

if TYPE_CHECKING:
    from MDAnalysis import AtomGroup, Universe


def from_mdanalysis(universe: Universe | AtomGroup, forcefield: ForceField | str | None = None) -> Atoms:
    """Make the atoms of an MDAnalysis Universe or AtomGroup, at its present frame.

    forcefield : a ForceField, or a name that ForceField.load knows

    With a force field, or without charges in the universe, all parameters come from the force field, by default
    Amber99SB. Else charges, types and bonds are the universe's, GB radii the set mbondi2's (bondi's without bonds).
    Then there are no Lennard-Jones parameters: a universe keeps none.

    >>> import MDAnalysis
    >>> universe = MDAnalysis.Universe("data/structures/trialanine.pdb")
    >>> pele_ocl.from_mdanalysis(universe, "amber99sb")
    Atoms(33 atoms, 3 residues, 32 bonds, net charge +0.000 e)
    """
    library = extra("MDAnalysis", "a universe of MDAnalysis")
    if not isinstance(universe, library.Universe | library.AtomGroup):
        raise InputError(f"universe is {described(universe)}; a Universe or an AtomGroup of MDAnalysis is needed")
    group = universe.atoms
    found = _structure(group)
    charges = column(group, "charges")
    if forcefield is not None or charges is None:
        field = forcefield if isinstance(forcefield, ForceField) else ForceField.load(forcefield)
        atoms = field.assign(found)
        return replace(atoms, notes=(*atoms.notes, f"all parameters are those of {field.name}"))
    types = column(group, "types")
    bonds = _bonds(group)
    atoms = Atoms(
        positions=found.positions,
        charges=charges.astype(np.float64),
        labels=found.labels,
        bonds=bonds,
        types=None if types is None else types.astype(np.str_),
        notes=(
            "charges are those of the universe, which has no Lennard-Jones parameters; name a force field, or read its "
            "topology with pele_ocl.read, to have them",
        ),
    )
    return given_default_radii(atoms, DEFAULT_SET if len(bonds) else "bondi")


def _structure(group: AtomGroup) -> Structure:
    """Names and positions, as a file would hold them."""
    return structure(records_of_group(group), "the universe", names_matter=False)


def _bonds(group: AtomGroup) -> Ints:
    """(m, 2) bonds among the atoms of the group."""
    places: dict[int, int] = {int(index): k for k, index in enumerate(group.indices)}
    try:
        pairs: Sequence[Sequence[int]] = group.bonds.indices.tolist()
    except (AttributeError, ValueError):
        pairs = ()
    kept = [sorted((places[i], places[j])) for i, j in pairs if i in places and j in places]
    return np.unique(np.array(kept, np.int32).reshape(-1, 2), axis=0)
