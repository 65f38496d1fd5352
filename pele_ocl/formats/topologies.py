"""Topologies, which have parameters and no positions, and the files that have the positions."""

from __future__ import annotations

from os import PathLike

from ..atoms import Atoms, Topology
from ..errors import FormatError, InputError
from ..inputfile import read_file
from .registry import STRUCTURES, is_structure, structure_format


def is_topology(path: str | PathLike[str]) -> bool:
    """Whether a file has parameters and no positions, as AMBER's prmtop; by its suffix."""
    return is_structure(path) and structure_format(path).topology is not None


def read_topology(path: str | PathLike[str]) -> Topology:
    """The atoms of a topology (.prmtop, .parm7, .top), to which `with_positions` gives positions.

    Raises FormatError, with section and line, where the file cannot be read, and for a file of another format.
    """
    read = structure_format(path).topology
    if read is None:
        known = ", ".join(suffix for suffix in STRUCTURES if is_topology(f"x{suffix}"))
        raise FormatError(f"{path}: has coordinates of its own; those of another file are for topologies, {known}")
    return read(read_file(path))


def read_placed(path: str | PathLike[str], coordinates: str | PathLike[str], model: int | None = None) -> Atoms:
    """The atoms of a topology at the positions of another file.

    coordinates : a restart of AMBER, text or NetCDF, a NetCDF trajectory, or a structure file of the same atoms
    model : number of the model or frame of the coordinates; the first if None

    Raises FormatError where a file cannot be read or the files have other numbers of atoms.
    """
    topology = read_topology(path)
    if not is_structure(coordinates):
        from .amber import place

        return place(topology, coordinates, model)
    found = structure_format(coordinates).read(read_file(coordinates), model)
    try:
        return topology.with_positions(found.positions, found.notes)
    except InputError as error:
        raise FormatError(f"{coordinates}: {error}") from None
