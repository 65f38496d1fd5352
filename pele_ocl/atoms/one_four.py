"""Bonded terms for the files of other programs, and the scale factors of 1-4 pairs."""

from __future__ import annotations

import numpy as np

from ..common.errors import InputError
from .atoms import Atoms
from .bonded import Bonded
from .labels import Floats

_TOLERANCE = 1e-4  # of a scale factor; charges in files have six digits


def written_terms(atoms: Atoms, what: str, others: tuple[str, ...] = ()) -> Bonded:
    """Return the bonded terms of atoms to write to a file.

    what : the file, for messages; others : supported tables in addition to bonds, angles, torsions and impropers

    Raises InputError for atoms without parameters, and for terms that the file cannot contain.
    """
    atoms.require(("charges", "lj_sigma", "lj_epsilon"), what)
    if atoms.labels is None or atoms.bonded is None:
        raise InputError(f"{what} needs names and bonded terms, which these atoms do not have")
    plain = ("bonds", "angles", "torsions", "impropers", "one_four", *others)
    for name, table in atoms.bonded.tables():
        if len(table) and name not in plain:
            raise InputError(f"{what} has no place for {table.kind}, of which these atoms have {len(table):,}")
    if atoms.virtual_sites is not None or len(atoms.rigid_pairs):
        raise InputError(f"{what} can only be written for atoms without virtual sites and rigid pairs")
    return atoms.bonded


def scales_of_pairs(atoms: Atoms, what: str) -> Floats:
    """Return the Coulomb and Lennard-Jones scale factors (m, 2) of the pairs in `atoms.bonded.one_four`.

    Raises InputError for pairs whose parameters are not scaled combinations of the parameters of their atoms.
    """
    assert atoms.bonded is not None
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    table = atoms.bonded.one_four
    i, j = table.atoms.T.reshape(2, -1)
    product, sigma, epsilon = table.parameters.T.reshape(3, -1)
    whole = atoms.charges[i] * atoms.charges[j]
    depth = np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])
    lengths = np.stack([atoms.lj_sigma[i], atoms.lj_sigma[j]])
    mixed = lengths.mean(axis=0) if atoms.combining == "arithmetic" else np.sqrt(lengths.prod(axis=0))
    tiny = np.abs(whole) < 1e-5, depth < 1e-6  # the scale factor is undefined
    scales = np.stack(
        [
            np.where(tiny[0], atoms.one_four[0], product / np.where(tiny[0], 1, whole)),
            np.where(tiny[1], atoms.one_four[1], epsilon / np.where(tiny[1], 1, depth)),
        ],
        axis=1,
    )
    for k, usual in enumerate(atoms.one_four):  # values in files are rounded
        scales[:, k] = np.where(np.abs(scales[:, k] - usual) < 100 * _TOLERANCE, usual, scales[:, k])
    odd = (~tiny[1] & (epsilon != 0) & (np.abs(sigma - mixed) > _TOLERANCE)) | (scales < 0).any(axis=1)
    if odd.any():
        k = int(np.argmax(odd))
        raise InputError(
            f"{what} cannot contain special 1-4 parameters, which {atoms.describe(int(i[k]))} and "
            f"{atoms.describe(int(j[k]))} have"
        )
    return scales
