"""Names of the atoms of MDAnalysis' groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Labels, Strings
from ..atoms.chemistry import element
from .assembly import ListedAtoms, labels_of_records

if TYPE_CHECKING:
    from MDAnalysis import AtomGroup


def labels_of_group(group: AtomGroup) -> Labels:
    """Labels of the atoms of a group; MDAnalysis' name of the segment of files without chains is none."""
    labels = labels_of_records(records_of_group(group))
    return replace(labels, chains=np.where(labels.chains == "SYSTEM", "", labels.chains))


def records_of_group(group: AtomGroup) -> ListedAtoms:
    """Names and positions of the atoms of a group, as a file would hold them."""
    n = len(group)
    names, residues = _texts(group, "names", n), _texts(group, "resnames", n)
    symbols = _texts(group, "elements", n)
    zeros = np.zeros(n, np.int32)
    chains = _texts(group, "chainIDs", n)
    numbers = column(group, "resids")
    kinds = _texts(group, "record_types", n)
    return ListedAtoms(
        positions=np.asarray(group.positions, np.float64),
        names=names,
        elements=np.array([element(*atom) for atom in zip(names, residues, symbols, strict=True)], np.str_),
        residue_names=residues,
        residue_numbers=np.arange(1, n + 1, dtype=np.int32) if numbers is None else numbers.astype(np.int32),
        insertion_codes=_texts(group, "icodes", n),
        chains=chains if (chains != "").any() else _texts(group, "segids", n),
        altlocs=np.full(n, ""),
        occupancies=np.ones(n),
        hetero=kinds == "HETATM",
        pieces=zeros if column(group, "segindices") is None else group.segindices.astype(np.int32),
        copies=zeros,
        lines=zeros,
    )


def column(group: AtomGroup, name: str) -> NDArray[np.generic] | None:
    """An attribute of all atoms; None where the universe has none of it."""
    try:
        return np.asarray(getattr(group, name))
    except (AttributeError, ValueError):  # MDAnalysis' NoDataError is both
        return None


def _texts(group: AtomGroup, name: str, n: int) -> Strings:
    found = column(group, name)
    return np.full(n, "", np.str_) if found is None else np.char.strip(found.astype(np.str_))
