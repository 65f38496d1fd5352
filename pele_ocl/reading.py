"""From a file to Atoms: the format's reader, then the force field."""

from __future__ import annotations

from os import PathLike

from . import arguments
from .atoms import Atoms
from .errors import InputError
from .forcefield import ForceField
from .formats import is_pqr, read_molecule


def require_model(model: object) -> None:
    """Raise InputError unless this is None or the number of a model."""
    if model is not None:
        arguments.whole_number("model", model)


def read(path: str | PathLike[str], forcefield: ForceField | str | None = None, model: int | None = None) -> Atoms:
    """Read a molecule and give it parameters.

    path : a .pdb, .ent, .cif, .mmcif or .pqr file, also with .gz; an InputFile in place of a path is not read again
    forcefield : a ForceField, or the name of a built-in one; by default Amber99SB. A PQR file brings its own
        parameters and takes none
    model : number of the model in a file with several; by default the first

    Returns Atoms in the order of the file. Raises FormatError where the file cannot be read, and ParameterError where
    the force field lacks a residue or an atom, and InputError for a force field with a PQR file.
    """
    arguments.file_path(path)
    require_model(model)
    if not isinstance(forcefield, ForceField | str | None):
        raise InputError(f"forcefield is {arguments.described(forcefield)}; a ForceField or the name of one is needed")
    if forcefield is not None and is_pqr(path):
        raise InputError(f"{path}: a PQR file brings its own charges and radii; give no force field with it")
    found = read_molecule(path, model)
    if isinstance(found, Atoms):
        return found
    if not isinstance(forcefield, ForceField):
        forcefield = ForceField.load(forcefield)
    return forcefield.assign(found)
