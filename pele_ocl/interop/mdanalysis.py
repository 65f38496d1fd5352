"""Conversion of MDAnalysis Universes and AtomGroups to Atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms, Ints, Structure, given_default_radii
from ..common.arguments import checked, described
from ..common.errors import InputError, PeleError
from ..common.extras import extra
from ..common.modules import takes
from ..common.notes import Note, collected_notes
from ..contract import made_whole
from ..forcefield import ForceField
from ..forcefield.openmm.gb_forces import DEFAULT_SET
from ..formats.assembly import structure
from ..formats.mdanalysis import chains_of_group, column, positions_of_group, records_of_group
from ..formats.registry import HeldFile, held_file
from ..formats.structures import brings_parameters, is_topology, read_structure_or_atoms, read_topology
from ..reading import Reading

if TYPE_CHECKING:
    from MDAnalysis import AtomGroup, Universe

_NAME = "the universe"
_MOST_APART_E = 1e-3  # tolerance for charges of a Universe and of its topology file


@checked
@takes("reading")
def from_mdanalysis(universe: Universe | AtomGroup, forcefield: ForceField | str | None = None, **words: Any) -> Atoms:
    """Convert an MDAnalysis Universe or AtomGroup to Atoms at its current frame.

    forcefield : a ForceField, or a name for ForceField.load
    words : options of pele_ocl.read, such as `select`, `ligands`, `ligand_template`, `radii`, `without` and `only`;
        `parameters`, CHARMM parameter files, for a Universe from a .psf

    Without `forcefield`, parameters are read from the topology file of the Universe, such as a .prmtop, if
    pele_ocl.read supports the format. For other files with charges, such as a .tpr, charges, types and bonds are those
    of the Universe, with mbondi2 radii (bondi without bonds) and without Lennard-Jones parameters. With `forcefield`,
    or if there are no charges, all parameters come from the force field, by default Amber99SB.

    >>> import MDAnalysis
    >>> universe = MDAnalysis.Universe("data/structures/trialanine.pdb")
    >>> pele_ocl.from_mdanalysis(universe, "amber99sb")
    Atoms(33 atoms, 3 residues, 32 bonds, net charge +0.000 e)
    """
    library = extra("MDAnalysis", "a universe of MDAnalysis")
    if not isinstance(universe, library.Universe | library.AtomGroup):
        raise InputError(f"universe is {described(universe)}; expected a Universe or an AtomGroup of MDAnalysis")
    given: dict[str, Any] = {"forcefield": forcefield, **words}
    parameters = given.pop("parameters", ())
    held = held_universe(universe.atoms, parameters, forcefield is not None)
    reading = Reading(**given)
    with collected_notes():  # they are in atoms.notes
        atoms = reading.one(held).atoms
    if forcefield is None:
        return atoms
    return replace(atoms, notes=(*atoms.notes, f"all parameters are those of {reading.loaded_forcefield.name}"))


def held_universe(
    group: AtomGroup, parameters: str | PathLike[str] | Sequence[str | PathLike[str]] = (), by_names: bool = False
) -> HeldFile:
    """Wrap the atoms of a group at the current frame as a file.

    parameters : CHARMM parameter files, for a .psf; by_names : True to use only labels and positions
    """
    cell = group.universe.trajectory.ts.triclinic_dimensions
    cell = None if cell is None or not np.any(cell) else np.array(cell, np.float64)
    files = (parameters,) if isinstance(parameters, str | PathLike) else tuple(parameters)
    found = structure(records_of_group(group), _NAME, _notes(group), names_matter=False)
    atoms = None if by_names else _of_topology_file(group, files, cell)
    if atoms is None and not by_names:
        atoms = _with_charges(group, found)
    if files and atoms is None:
        raise InputError(f"{_NAME}: `parameters` need a .psf file, which its topology is not; leave them out")
    return held_file(_NAME, found if atoms is None else atoms, cell)


def _notes(group: AtomGroup) -> tuple[str, ...]:
    """Return a note about segments that were renamed to chain letters."""
    letters = chains_of_group(group)[1]
    if not letters:
        return ()
    named = ", ".join(f"{name} is {letter}" for name, letter in list(letters.items())[:8])
    return (f"{_NAME}: its segment names are too long for chains, so letters are used: {named}",)


def _of_topology_file(
    group: AtomGroup, parameters: tuple[str | PathLike[str], ...], cell: Any
) -> Atoms | None:  # fmt: skip
    """Create the atoms with the parameters of the topology file; None if the format is not supported.

    Charges that were changed in the Universe have priority.
    """
    universe = group.universe
    path = universe.filename
    if not isinstance(path, str | PathLike) or not Path(path).is_file() or not brings_parameters(path):
        return None
    is_psf = Path(path).suffix.lower() == ".psf"
    if is_psf and not parameters:
        return None
    try:
        whole = read_topology(path, parameters).parameters if is_topology(path) else read_structure_or_atoms(path)
    except PeleError:
        if is_psf:
            raise
        return None  # a file that only MDAnalysis can read
    everyone = universe.atoms
    assert isinstance(whole, Atoms)
    if len(whole) != len(everyone):
        return None
    atoms = whole.moved(positions_of_group(everyone))
    charges = column(everyone, "charges")
    own = None if charges is None else charges.astype(np.float64)
    if own is not None and np.abs(own - atoms.charges).max() > _MOST_APART_E:
        atoms = replace(atoms, charges=own, notes=(*atoms.notes, f"{_NAME}: its charges differ from those of {path}"))
    indices = group.indices
    if len(indices) < len(atoms) or (np.diff(indices) != 1).any():
        atoms = atoms[indices]
    return made_whole(atoms, cell)


def _with_charges(group: AtomGroup, found: Structure) -> Atoms | None:
    """Create the atoms with charges, types and bonds of the Universe; None if it has no charges."""
    charges = column(group, "charges")
    if charges is None or len(found.positions) < len(group):
        return None
    types = column(group, "types")
    bonds = _bonds(group)
    path = group.universe.filename
    way = "give a force field with `forcefield`"
    if isinstance(path, str | PathLike) and str(path).lower().endswith(".psf"):
        way += ", or CHARMM's parameter files with `parameters`"
    atoms = Atoms(
        positions=found.positions,
        charges=charges.astype(np.float64),
        labels=found.labels,
        bonds=bonds,
        types=None if types is None else types.astype(np.str_),
        notes=(
            *found.notes,
            Note(
                f"charges are those of the universe, which has no Lennard-Jones parameters; to add them, {way}",
                code="no_lennard_jones",
            ),
        ),
    )
    return given_default_radii(atoms, DEFAULT_SET if len(bonds) else "bondi")


def _bonds(group: AtomGroup) -> Ints:
    """Return the bonds among the atoms of the group, (m, 2)."""
    places: dict[int, int] = {int(index): k for k, index in enumerate(group.indices)}
    try:
        pairs: Sequence[Sequence[int]] = group.bonds.indices.tolist()
    except (AttributeError, ValueError):
        pairs = ()
    kept = [sorted((places[i], places[j])) for i, j in pairs if i in places and j in places]
    return np.unique(np.array(kept, np.int32).reshape(-1, 2), axis=0)
