"""Topologies, which have parameters and no positions, and the files that have the positions."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np

from ..atoms import Atoms, Floats, Topology
from ..contract import impossible_bonds, made_whole
from ..errors import FormatError, InputError
from ..inputfile import read_file
from .registry import STRUCTURES, is_structure, structure_format


def is_topology(path: str | PathLike[str]) -> bool:
    """Whether a file has parameters and no positions, as AMBER's prmtop; by its suffix."""
    return is_structure(path) and structure_format(path).topology is not None


Paths = Sequence[str | PathLike[str]]


def read_topology(path: str | PathLike[str], parameters: Paths = ()) -> Topology:
    """The atoms of a topology (.prmtop, .parm7, .top, .psf), to which `with_positions` gives positions.

    parameters : CHARMM's parameter files, for a .psf

    Raises FormatError, with section and line, where the file cannot be read, and for a file of another format.
    """
    form = structure_format(path)
    if form.with_parameters is not None:
        return form.with_parameters(read_file(path), parameters)
    if parameters:
        raise InputError(f"{path}: parameter files go with a .psf; leave out {parameters[0]}")
    if form.topology is None:
        known = ", ".join(suffix for suffix in STRUCTURES if is_topology(f"x{suffix}"))
        raise FormatError(f"{path}: has coordinates of its own; those of another file are for topologies, {known}")
    return form.topology(read_file(path))


def read_placed(
    path: str | PathLike[str], coordinates: str | PathLike[str] | Floats, model: int | None = None,
    parameters: Paths = (),
) -> Atoms:  # fmt: skip
    """The atoms of a topology at the positions of another file.

    coordinates : a restart of AMBER, text or NetCDF, a NetCDF trajectory, a structure file of the same atoms, or the
        positions themselves, (n, 3) A
    model : number of the model or frame of the coordinates; the first if None
    parameters : CHARMM's parameter files, for a .psf

    Where the faces of the coordinates' unit cell cut molecules, they are made whole, which a note tells.

    Raises FormatError where a file cannot be read or the files have other numbers of atoms.
    """
    topology = read_topology(path, parameters)
    if isinstance(coordinates, np.ndarray):
        return topology.with_positions(coordinates)
    if not is_structure(coordinates):
        from .amber import place

        return _whole(place(topology, coordinates, model), coordinates, model)
    found = structure_format(coordinates).read(read_file(coordinates), model)
    try:
        atoms = topology.with_positions(found.positions, found.notes)
    except InputError as error:
        raise FormatError(f"{coordinates}: {error}") from None
    return _whole(atoms, coordinates, model)


def _whole(atoms: Atoms, coordinates: str | PathLike[str], model: int | None) -> Atoms:
    """The atoms with the molecules that the faces of the coordinates' cell cut made whole."""
    if not len(impossible_bonds(atoms)):
        return atoms
    from .cells import read_cell

    return made_whole(atoms, read_cell(coordinates, (model or 1) - 1))
