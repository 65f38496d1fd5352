"""Labels and positions of MDAnalysis AtomGroups."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase, digits
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Labels, Strings
from ..atoms.chemistry import element
from .assembly import ListedAtoms, labels_of_records, of_float32

if TYPE_CHECKING:
    from MDAnalysis import AtomGroup


_LONGEST = 4  # maximum length of segment names in CHARMM and PDB files
_IN_FLOAT32 = ("XTC", "TRR", "DCD", "NCDF")  # MDAnalysis names of trajectory formats
_LETTERS = ascii_uppercase + digits + ascii_lowercase


def labels_of_group(group: AtomGroup) -> Labels:
    """Return the Labels of a group."""
    return labels_of_records(records_of_group(group))


def records_of_group(group: AtomGroup) -> ListedAtoms:
    """Return the atoms of a group as listed in a file."""
    n = len(group)
    names, residues = _texts(group, "names", n), _texts(group, "resnames", n)
    symbols = _texts(group, "elements", n)
    zeros = np.zeros(n, np.int32)
    numbers, occupancies = column(group, "resids"), column(group, "occupancies")
    kinds = _texts(group, "record_types", n)
    return ListedAtoms(
        positions=positions_of_group(group),
        names=names,
        elements=np.array([element(*atom) for atom in zip(names, residues, symbols, strict=True)], np.str_),
        residue_names=residues,
        residue_numbers=np.arange(1, n + 1, dtype=np.int32) if numbers is None else numbers.astype(np.int32),
        insertion_codes=_texts(group, "icodes", n),
        chains=chains_of_group(group)[0],
        altlocs=_texts(group, "altLocs", n),
        occupancies=np.ones(n) if occupancies is None else occupancies.astype(np.float64),
        hetero=kinds == "HETATM",
        pieces=zeros if column(group, "segindices") is None else group.segindices.astype(np.int32),
        copies=zeros,
        lines=zeros,
    )


def positions_of_group(group: AtomGroup) -> Floats:
    """Return the positions (n, 3) A of the current frame. Those read from text files get their exact decimals."""
    if group.universe.trajectory.format in _IN_FLOAT32:  # as in the readers of this package
        return np.asarray(group.positions, np.float64)
    return of_float32(group.positions)


def chains_of_group(group: AtomGroup) -> tuple[Strings, dict[str, str]]:
    """Return the chains of a group (n,): the chain identifiers if there are any, otherwise the segments.

    MDAnalysis generates segment names such as "SYSTEM" or "seg_0_Protein_A", which are too long for files. A single
    such name is not used as a chain; several are replaced by letters in order. Also returns the letter of each such
    segment.
    """
    n = len(group)
    chains = _texts(group, "chainIDs", n)
    if (chains != "").any():
        return chains, {}
    segments = _texts(group, "segids", n)
    names = list(dict.fromkeys(segments.tolist()))
    long = [name for name in names if len(name) > _LONGEST]
    if not long:
        return segments, {}
    free = [letter for letter in _LETTERS if letter not in names]
    letters = dict(zip(long, free, strict=False)) if len(names) > 1 and len(long) <= len(free) else {}
    return np.array([letters.get(of, "" if len(of) > _LONGEST else of) for of in segments.tolist()], np.str_), letters


def column(group: AtomGroup, name: str) -> NDArray[np.generic] | None:
    """Return an attribute of all atoms; None if the universe does not have it."""
    try:
        return np.asarray(getattr(group, name))
    except (AttributeError, ValueError):  # MDAnalysis' NoDataError is both
        return None


def _texts(group: AtomGroup, name: str, n: int) -> Strings:
    found = column(group, name)
    return np.full(n, "", np.str_) if found is None else np.char.strip(found.astype(np.str_))
