"""Reading of all conformations in a structure or trajectory file."""

from __future__ import annotations

from os import PathLike

import numpy as np

from ..atoms import Atoms, Floats, correspondence
from ..common.arguments import checked, file_path, instance
from ..common.errors import FormatError, InputError
from ..formats import STRUCTURES, structure_suffix
from ..formats import read_conformations as read_models
from .files import open_frames


@checked
def read_conformations(
    path: str | PathLike[str], failed: dict[int, str] | None = None, atoms: Atoms | None = None
) -> tuple[list[int], Floats]:
    """Read the models of a PDB or mmCIF file, or the frames of a trajectory, such as from `write_conformations`.

    Returns the model numbers, or the frame numbers from 1, and the positions (m, n, 3) A. All models must have the
    atoms of the first one, which defines the order unless `atoms` are given. Molecules in models that are split by
    periodic boundaries are made whole. Use `trajectory` to read frames in pieces, image them or select atoms.

    path : .pdb, .cif, .h5, .nc, .dcd, .xtc, .trr or .xyz file, or an AMBER restart; .pdb and .cif may be compressed
    failed : dictionary for the errors of unreadable models, by index from 0. Their positions are NaN, and the first
        readable model defines the atoms. By default an error is raised
    atoms : Atoms that define the order of the positions. They are matched to those in the file by name
        (`correspondence`)

    Raises FormatError, with the line, for models with different atoms, for other formats, and if the atoms differ from
    `atoms`.

        >>> import pele_ocl
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> pele_ocl.write_conformations("two.dcd", atoms, [atoms.positions, atoms.positions + 1])
        >>> numbers, positions = pele_ocl.read_conformations("two.dcd")
        >>> numbers, positions.shape
        ([1, 2], (2, 33, 3))
    """
    if structure_suffix(file_path(path)) in STRUCTURES:
        return read_models(path, failed, atoms)
    if failed is not None:
        instance("failed", failed, dict, "a dictionary that takes reasons")
    with open_frames(file_path(path)) as file:
        positions = np.array(file.read(range(file.n_frames), slice(None)), np.float64)
        labels = file.labels
    for place in np.flatnonzero(~np.isfinite(positions).all(axis=(1, 2))).tolist():
        reason = f"{path}: frame {place + 1} was not computed, or failed"
        if failed is None:
            raise FormatError(reason)
        failed[place] = reason
    numbers = list(range(1, len(positions) + 1))
    if atoms is None:
        return numbers, positions
    instance("atoms", atoms, Atoms, "Atoms")
    if labels is None and positions.shape[1] == len(atoms):
        return numbers, positions
    try:
        same = correspondence(atoms.labels, labels, str(path), n_atoms=(len(atoms), positions.shape[1]))
    except InputError as error:
        raise FormatError(str(error)) from None
    return numbers, positions[:, same.order]
