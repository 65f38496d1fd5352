"""From a file to Atoms: the format's reader, then the force field."""

from __future__ import annotations

from os import PathLike

from .atoms import Atoms
from .forcefield import ForceField
from .formats import is_pqr, read_pqr, read_structure


def read(path: str | PathLike[str], forcefield: ForceField | str | None = None, model: int | None = None) -> Atoms:
    """Read a molecule and give it parameters.

    path : a .pdb, .ent, .cif, .mmcif or .pqr file, also with .gz
    forcefield : a ForceField, or the name of a built-in one; by default Amber99SB. A PQR file brings its own parameters
    model : number of the model in a file with several; by default the first

    Returns Atoms in the order of the file. Raises FormatError where the file cannot be read, and ParameterError where
    the force field lacks a residue or an atom.
    """
    if is_pqr(path):
        return read_pqr(path)
    if not isinstance(forcefield, ForceField):
        forcefield = ForceField.load(forcefield)
    return forcefield.assign(read_structure(path, model))
