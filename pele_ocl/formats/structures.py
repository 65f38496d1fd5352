"""Readers of structures and topologies of any format, which the suffix determines.

`read_structure` reads labels and positions, and `read_structure_or_atoms` also parameters contained in the file.
`pele_ocl.read` returns Atoms, with parameters from a force field if necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats, Structure
from ..common.arguments import file_path, instance
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..contract import impossible_bonds, of_order, whole_structure
from .cells import read_cell
from .registry import STRUCTURES, is_structure, refuse_other_format, structure_format, structure_suffix

if TYPE_CHECKING:
    from ..atoms import Topology

Paths = Sequence[str | PathLike[str]]


def read_structure(path: str | PathLike[str], model: int | None = None) -> Structure:
    """Read one model of a structure file, plain or gzip. The suffix determines the format.

    path : file with a suffix in STRUCTURES, also followed by `.gz`
    model : number of the model in the file; by default the first

    Molecules split by the periodic boundaries of the unit cell are made whole, with a note.

    Raises FormatError, with file and line, for files that cannot be read, and for formats that contain parameters.
    """
    file = read_file(path)
    found = None if is_topology(path) else structure_format(path).read(file, model)
    if not isinstance(found, Structure):
        raise FormatError(
            f"{path}: contains its own parameters, or they follow from its bonds, so it does not need to be prepared; "
            "energy and the other functions read it directly"
        )
    return _whole_structure(found, path, model)


def read_structure_or_atoms(
    path: str | PathLike[str],
    model: int | None = None,
    coordinates: str | PathLike[str] | Floats | None = None,
    parameters: Paths = (),
) -> Structure | Atoms:
    """Read a molecule without applying a force field: Atoms if the file contains parameters, otherwise a Structure.

    coordinates : coordinates for a topology: an AMBER restart, a NetCDF trajectory, a structure file, whose atoms are
        matched by name (`correspondence`), or positions (n, 3) A
    model : number of the model, or of the model or frame of the coordinates; by default the first
    parameters : CHARMM parameter files, for a .psf

    Molecules split by the periodic boundaries of the unit cell are made whole, with a note.

    Raises FormatError if a file cannot be read or the atoms of two files differ. Raises InputError for parameters
    without coordinates.
    """
    if coordinates is not None:
        return _placed(read_topology(path, parameters), coordinates, model)
    if parameters:
        raise InputError(f"{parameters[0]}: parameter files need a .psf and a coordinate file, which is missing")
    found = structure_format(path).read(read_file(path), model)
    return _whole_structure(found, path, model) if isinstance(found, Structure) else found


def read_conformations(
    path: str | PathLike[str], failed: dict[int, str] | None = None, atoms: Atoms | None = None
) -> tuple[list[int], Floats]:
    """Read all models of a PDB or mmCIF file: the model numbers, and the positions (m, n, 3) A.

    Atoms are in the order of the first model, which also defines the alternate locations, or in the order of `atoms`.
    Molecules split by the periodic boundaries of the unit cell are made whole.

    failed : dictionary for the errors of unreadable models, by index from 0. Their positions are NaN, and the first
        readable model defines the atoms. By default an error is raised
    atoms : Atoms that define the order of the positions. They are matched to those in the file by name
        (`correspondence`)

    Raises FormatError, with the line, for models with different atoms, for other formats, and if the atoms differ from
    `atoms`.
    """
    file_path(path)  # validates the path
    if failed is not None:
        instance("failed", failed, dict, "a dictionary that takes reasons")
    read = structure_format(path).conformations if structure_suffix(path) in STRUCTURES else None
    if read is None:
        raise FormatError(
            f"{path}: all models can only be read together from PDB and mmCIF files; read one at a time with `model`"
        )
    numbers, positions = read(read_file(path), failed)
    cell, readable = read_cell(path), [place for place in range(len(numbers)) if place not in (failed or {})]
    if (cell is None and atoms is None) or not readable:
        return numbers, positions
    first = structure_format(path).read(read_file(path), numbers[readable[0]])
    assert isinstance(first, Structure)
    if cell is not None:
        positions = positions.copy()
        for place in readable:
            positions[place] = whole_structure(replace(first, positions=positions[place]), cell).positions
    if atoms is None:
        return numbers, positions
    from ..atoms import correspondence

    n_atoms = len(instance("atoms", atoms, Atoms, "Atoms")), len(first.labels)
    try:
        same = correspondence(atoms.labels, first.labels, str(path), n_atoms=n_atoms)
    except InputError as error:
        raise FormatError(str(error)) from None
    return numbers, positions[:, same.order]


def model_numbers(path: str | PathLike[str]) -> list[int]:
    """Return the model numbers of a structure file, in order.

    Raises FormatError if the file cannot be read or has duplicate model numbers.
    """
    return structure_format(file_path(path)).models(read_file(path))


def brings_parameters(path: str | PathLike[str]) -> bool:
    """Return whether the format of a file contains charges, such as PQR, mol2 and topologies; by suffix."""
    return is_structure(path) and structure_format(path).brings_parameters


def is_topology(path: str | PathLike[str]) -> bool:
    """Return whether the format of a file contains parameters without positions, such as AMBER's prmtop; by suffix."""
    return is_structure(path) and structure_format(path).topology is not None


def read_topology(path: str | PathLike[str], parameters: Paths = ()) -> Topology:
    """Read a topology (.prmtop, .parm7, .top, .psf). `Topology.with_positions` adds the positions.

    parameters : CHARMM parameter files, for a .psf

    Raises FormatError, with section and line, if the file cannot be read or has another format.
    """
    form = structure_format(path)
    if form.with_parameters is not None:
        return form.with_parameters(read_file(path), parameters)
    if parameters:
        raise InputError(f"{path}: parameter files need a .psf; leave out {parameters[0]}")
    if form.topology is None:
        known = ", ".join(suffix for suffix in STRUCTURES if is_topology(f"x{suffix}"))
        raise FormatError(f"{path}: contains coordinates; separate coordinate files are for topologies, {known}")
    return form.topology(read_file(path))


def _placed(topology: Topology, coordinates: str | PathLike[str] | Floats, model: int | None) -> Atoms:
    """Combine a topology with the positions in another file."""
    if isinstance(coordinates, np.ndarray):
        return _ordered(topology.with_positions(coordinates), "the positions that were given")
    if not is_structure(coordinates):
        refuse_other_format(coordinates)
        from .amber import place

        return _ordered(_whole(place(topology, coordinates, model), coordinates, model), str(coordinates))
    from ..atoms import correspondence

    found = structure_format(coordinates).read(read_file(coordinates), model)
    own, n_atoms = topology.parameters.labels, (len(topology), len(found.positions))
    try:
        same = correspondence(own, found.labels, str(coordinates), topology.source, n_atoms)
        atoms = topology.with_positions(found.positions[same.order], (*found.notes, *same.notes))
    except InputError as error:
        raise FormatError(str(error)) from None
    return _whole(atoms, coordinates, model)


def _ordered(atoms: Atoms, source: str) -> Atoms:
    """Add notes if positions without labels seem to be in another order, except if bonds are impossibly long."""
    found = [] if len(impossible_bonds(atoms)) else of_order(atoms, atoms.bonds, atoms.positions)
    if not found:
        return atoms
    return replace(atoms, notes=(*atoms.notes, *(f"{source}: {finding.text}" for finding in found)))


def _whole_structure(structure: Structure, path: str | PathLike[str], model: int | None) -> Structure:
    """Make the molecules of a structure whole, using the unit cell of the file."""
    return whole_structure(structure, read_cell(path, (model or 1) - 1))


def _whole(atoms: Atoms, coordinates: str | PathLike[str], model: int | None) -> Atoms:
    """Make the molecules of atoms whole, using the unit cell of the coordinates."""
    if not len(impossible_bonds(atoms)):
        return atoms
    from ..contract import made_whole

    return made_whole(atoms, read_cell(coordinates, (model or 1) - 1))
