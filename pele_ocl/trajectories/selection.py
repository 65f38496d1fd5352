"""Selection of atoms in trajectory frames, by index or selection language (docs/selection.md)."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Structure, Taken, selectable
from ..atoms.selection import SelectableAtoms
from ..atoms.selection import Selection as Words
from ..common.arguments import atoms_chosen, described
from ..common.errors import InputError
from ..common.indices import is_group
from ..formats import is_topology, read_structure_or_atoms, read_topology

Selection = str | Words | Taken | slice | ArrayLike


def selected_atoms(select: Selection, n_atoms: int, names: SelectableAtoms | None) -> NDArray[np.intp]:
    """Return the indices (k,) of the selected atoms, ascending for selections in words.

    select : a selection, also as atoms.selection.Selection, a slice, a boolean mask (n_atoms,), indices (k,), or Taken
        atoms of a structure
    names : properties of the atoms; without them a selection can only use indices

    Raises InputError for invalid and empty selections.
    """
    everyone = np.arange(n_atoms, dtype=np.intp)
    if isinstance(select, str | Words) or is_group(select):
        words = select if isinstance(select, Words) else Words(select)
        if names is None and words.needs_names:
            raise InputError(
                f"the selection {words.text[:60]!r} uses names, which a trajectory does not contain; give a "
                "structure of all "
                "its atoms by `topology`, or indices, such as 'index 0:331'"
            )
        chosen = np.flatnonzero(words.mask(SelectableAtoms(n_atoms) if names is None else names))
    elif isinstance(select, Taken):
        if len(select) != n_atoms:
            raise InputError(f"the frames have {n_atoms:,} atoms, the structure {len(select):,}")
        chosen = select.indices
    elif isinstance(select, slice):
        chosen = everyone[select]
    else:
        given = atoms_chosen("the selected atoms", select)
        try:
            chosen = everyone[given]
        except IndexError:
            raise InputError(f"the selected atoms are not among the {n_atoms:,} of a frame") from None
    if chosen.ndim != 1 or not len(chosen):
        raise InputError(f"the selection {described(select)} contains no atoms")
    return chosen


def described_file(path: str | PathLike[str]) -> SelectableAtoms:
    """Return the SelectableAtoms of a structure or topology file. Raises FormatError if it cannot be read."""
    found = read_topology(path).parameters if is_topology(path) else read_structure_or_atoms(path)
    if isinstance(found, Structure):
        return selectable(found.labels, found.positions)
    described = selectable(found)
    return replace(described, positions=None) if is_topology(path) else described


def described_atoms(atoms: Atoms) -> SelectableAtoms | None:
    """Return the SelectableAtoms of atoms; None if they have no labels."""
    return None if atoms.labels is None else selectable(atoms)
