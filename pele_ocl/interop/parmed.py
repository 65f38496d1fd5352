"""Conversion of ParmEd Structures to Atoms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Residue
from ..common.arguments import instance
from ..common.errors import InputError
from ..common.extras import extra
from ..forcefield.openmm.forces import A_PER_NM
from ..forcefield.openmm.gb_forces import set_of
from ..forcefield.openmm.system import Residues, atoms_of_system

if TYPE_CHECKING:
    from parmed import Structure


def from_parmed(structure: Structure) -> Atoms:
    """Convert a ParmEd Structure to Atoms with all parameters. Requires ParmEd and OpenMM.

    GB radii and scale factors are those of the Structure, or mbondi2 if it has none. Raises InputError like
    `from_openmm`, and for a Structure without coordinates.
    """
    instance("structure", structure, extra("parmed", "a structure of ParmEd").Structure, "a Structure of ParmEd")
    app = extra("openmm.app", "a structure of ParmEd")
    if structure.coordinates is None:
        raise InputError("the ParmEd structure has no coordinates; load it with coordinates")
    try:
        system = structure.createSystem(nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False)
    except Exception as error:  # ParmEd has its own error classes
        raise InputError(f"ParmEd cannot create a System for the structure: {error}") from error
    places = np.asarray(structure.coordinates) / A_PER_NM
    atoms = atoms_of_system(structure.topology, system, places, residues=residues_of(structure))
    radii = np.array([atom.solvent_radius for atom in structure.atoms])
    types = np.array([str(atom.type) for atom in structure.atoms], np.str_)
    atoms = replace(atoms, types=types, type_family="amber" if type(structure).__name__ == "AmberParm" else "")
    if not radii.all():
        return atoms
    assert atoms.labels is not None
    scales = np.array([atom.screen for atom in structure.atoms])
    return replace(
        atoms,
        gb_radii=radii,
        gb_scales=scales if scales.all() else atoms.gb_scales,
        gb_radii_set=set_of(radii, atoms.labels, atoms.bonds),
        default_radii=None,
    )


def residues_of(structure: Structure) -> Residues:
    """Return the residues with ParmEd's numbers and chains.

    If the file has no residue numbers, ParmEd counts from 0, without chains; here they are numbered from 1, as in
    AMBER.
    """
    found = structure.residues
    counted = all(of.number in (of.idx, -1) and not of.chain for of in found)
    each = [
        Residue(
            str(of.chain or "").strip(), of.name, of.idx + 1 if counted else int(of.number),
            str(of.insertion_code or "").strip(),
        )
        for of in found
    ]  # fmt: skip
    return Residues([atom.residue.idx for atom in structure.atoms], each)
