"""Chains and residue numbers of a GROMACS run by its structure files, as users of gmx_MMPBSA know them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Labels, correspondence
from ...atoms.labels import labels_of
from ...common.errors import FormatError, InputError
from ...formats import is_structure, is_topology, read_structure_or_atoms


def layout_of(
    own: Labels, chosen: NDArray[np.intp], n: int, reference: Path | None, structure: Path | None
) -> tuple[Labels | None, tuple[str, ...]]:
    """Labels of receptor and ligand with the chains and residue numbers of a structure, and notes; None without one.

    own : labels of receptor and ligand; chosen : (k,) which of the n atoms of the frames these are
    reference : a structure of receptor and ligand, whose residues are to be theirs
    structure : a structure of all atoms of the frames, where there is no reference; it may be of a kind that is not
        read, as a .tpr file, or have neither chains nor numbers of its own

    Raises InputError where residues of the structure are not those of receptor and ligand.
    """
    if reference is not None:
        found = read_structure_or_atoms(reference).labels
        assert found is not None
        return _with_names_of(own, found, reference)
    if structure is None or not is_structure(structure) or is_topology(structure):
        return None, ()
    try:
        found = read_structure_or_atoms(structure).labels
    except (FormatError, InputError) as error:
        return None, (f"{error}; chains and residue numbers are those of the topology",)
    if found is None or not (found.chains != "").any():
        return None, ()
    if len(found) != n:
        return None, (f"{structure}: has {len(found):,} atoms, the frames {n:,}; chains and residue numbers are those "
                      "of the topology",)  # fmt: skip
    return _with_names_of(own, labels_of(found, chosen), structure)


def _with_names_of(own: Labels, found: Labels, path: Path) -> tuple[Labels, tuple[str, ...]]:
    """Lay the residues of a structure over the own ones; atoms within a residue may differ, as without hydrogens."""
    matched = correspondence(_residues(own), _residues(found), str(path), "the topology",
                             advice="the residues of receptor and ligand are needed, in their order")  # fmt: skip
    first = found.residue_starts[matched.order][_residue_places(own)]
    layout = replace(own, chains=found.chains[first], residue_numbers=found.residue_numbers[first],
                     insertion_codes=found.insertion_codes[first])  # fmt: skip
    return layout, ()


def _residue_places(labels: Labels) -> NDArray[np.intp]:
    """(n,) place of each atom's residue in the order of `residue_starts`."""
    starts = labels.residue_starts
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(labels)))


def _residues(labels: Labels) -> Labels:
    """Labels with one atom for each residue, of one name and no element."""
    first = np.asarray(labels.residue_starts, np.intp)
    each = labels_of(labels, first)
    n = len(first)
    return replace(each, names=np.full(n, "CA"), elements=np.full(n, "X"), residue_index=np.arange(n, dtype=np.int32))
