"""MDAnalysis' universes as Atoms, at the frame where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Ints, Labels, Strings, Structure, given_default_radii
from ..atoms.chemistry import element
from ..common.arguments import described
from ..common.errors import InputError
from ..common.extras import extra
from ..forcefield import ForceField
from ..forcefield.openmm.gb_forces import DEFAULT_SET
from ..formats.assembly import ListedAtoms, labels_of_records, structure

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
    charges = _column(group, "charges")
    if forcefield is not None or charges is None:
        field = forcefield if isinstance(forcefield, ForceField) else ForceField.load(forcefield)
        atoms = field.assign(found)
        return replace(atoms, notes=(*atoms.notes, f"all parameters are those of {field.name}"))
    types = _column(group, "types")
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
    return structure(_records(group), "the universe", names_matter=False)


def labels_of_group(group: AtomGroup) -> Labels:
    """Labels of the atoms of a group; MDAnalysis' name of the segment of files without chains is none."""
    labels = labels_of_records(_records(group))
    return replace(labels, chains=np.where(labels.chains == "SYSTEM", "", labels.chains))


def _records(group: AtomGroup) -> ListedAtoms:
    n = len(group)
    names, residues = _texts(group, "names", n), _texts(group, "resnames", n)
    symbols = _texts(group, "elements", n)
    zeros = np.zeros(n, np.int32)
    chains = _texts(group, "chainIDs", n)
    numbers = _column(group, "resids")
    kinds = _texts(group, "record_types", n)
    return ListedAtoms(
        positions=np.asarray(group.positions, np.float64),
        names=names,
        elements=np.array([element(*atom) for atom in zip(names, residues, symbols, strict=True)], np.str_),
        residue_names=residues,
        residue_numbers=np.arange(1, n + 1, dtype=np.int32) if numbers is None else numbers.astype(np.int32),
        insertion_codes=_texts(group, "icodes", n),
        chains=chains if (chains != "").any() else _texts(group, "segids", n),
        altlocs=np.full(n, ""),
        occupancies=np.ones(n),
        hetero=kinds == "HETATM",
        pieces=zeros if _column(group, "segindices") is None else group.segindices.astype(np.int32),
        copies=zeros,
        lines=zeros,
    )


def _column(group: AtomGroup, name: str) -> NDArray[np.generic] | None:
    """An attribute of all atoms; None where the universe has none of it."""
    try:
        return np.asarray(getattr(group, name))
    except (AttributeError, ValueError):  # MDAnalysis' NoDataError is both
        return None


def _texts(group: AtomGroup, name: str, n: int) -> Strings:
    found = _column(group, name)
    return np.full(n, "", np.str_) if found is None else np.char.strip(found.astype(np.str_))


def _bonds(group: AtomGroup) -> Ints:
    """(m, 2) bonds among the atoms of the group."""
    places: dict[int, int] = {int(index): k for k, index in enumerate(group.indices)}
    try:
        pairs: Sequence[Sequence[int]] = group.bonds.indices.tolist()
    except (AttributeError, ValueError):
        pairs = ()
    kept = [sorted((places[i], places[j])) for i, j in pairs if i in places and j in places]
    return np.unique(np.array(kept, np.int32).reshape(-1, 2), axis=0)
