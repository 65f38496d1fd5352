"""From a file to Atoms: the format's reader, then the force field."""

from __future__ import annotations

from os import PathLike

from . import arguments
from .atoms import Atoms
from .errors import InputError
from .forcefield import ForceField
from .formats import is_pqr, read_molecule, read_placed, structure_format


def require_model(model: object) -> None:
    """Raise InputError unless this is None or the number of a model."""
    if model is not None:
        arguments.whole_number("model", model)


def read(
    path: str | PathLike[str],
    forcefield: ForceField | str | None = None,
    model: int | None = None,
    coordinates: str | PathLike[str] | None = None,
) -> Atoms:
    """Read a molecule and give it parameters.

    path : a .pdb, .ent, .cif, .mmcif or .pqr file, or an AMBER topology, .prmtop, .parm7 or .top, also with .gz; an
        InputFile in place of a path is not read again
    forcefield : a ForceField, or the name of a built-in one; by default Amber99SB. A PQR file and a topology bring
        their own parameters and take none
    model : number of the model in a file with several, or of the frame of `coordinates`; by default the first
    coordinates : for a topology the file with the positions: an AMBER restart (.rst7, .inpcrd, .ncrst), a NetCDF
        trajectory or a structure file

    Returns Atoms in the order of the file. Raises FormatError where a file cannot be read, and ParameterError where
    the force field lacks a residue or an atom, and InputError for a force field with a file that takes none.
    """
    arguments.file_path(path)
    require_model(model)
    if not isinstance(forcefield, ForceField | str | None):
        raise InputError(f"forcefield is {arguments.described(forcefield)}; a ForceField or the name of one is needed")
    if forcefield is not None and is_pqr(path):
        kind = structure_format(path).kind
        raise InputError(f"{path}: {kind} brings its own charges and radii; give no force field with it")
    if coordinates is not None:
        arguments.file_path(coordinates, "coordinates")
        return read_placed(path, coordinates, model)
    found = read_molecule(path, model)
    if isinstance(found, Atoms):
        return found
    if not isinstance(forcefield, ForceField):
        forcefield = ForceField.load(forcefield)
    return forcefield.assign(found)
