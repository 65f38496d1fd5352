"""Conversion of indices, masks and MDAnalysis groups to selection strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, described


class IndexText(str):
    """Selection string with atom indices, such as "index 0:9 12".

    n_atoms : number of atoms in the molecule; None if unknown
    """

    n_atoms: int | None

    def __new__(cls, text: str, n_atoms: int | None = None) -> IndexText:
        self = super().__new__(cls, text)
        self.n_atoms = n_atoms
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexText, (str(self), self.n_atoms)


def selection_text(name: str, given: Any) -> str:
    """Return a selection as a string.

    given : a string, which is returned unchanged; indices (k,), a mask (n,), or an MDAnalysis group

    Raises InputError for other values, and if no atom is selected.
    """
    if isinstance(given, str):
        return given
    if is_group(given):
        return index_text(name, given.atoms.indices, len(given.universe.atoms))
    try:
        found = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        found = np.empty(0, object)
    if found.ndim != 1 or found.dtype.kind not in "iub":
        raise InputError(
            f"{name} is {described(given)}; expected a text of the selection language, a mask or indices of atoms, or "
            "an AtomGroup of MDAnalysis"
        )
    if found.dtype.kind == "b":
        return index_text(name, np.flatnonzero(found), len(found))
    return index_text(name, found, None)


def is_group(given: object) -> bool:
    """Return whether this is an MDAnalysis group of atoms, residues or segments, or a Universe."""
    return type(given).__module__.partition(".")[0] == "MDAnalysis" and hasattr(given, "atoms")


def index_text(name: str, indices: NDArray[Any], n_atoms: int | None) -> IndexText:
    """Return atom indices as a selection string with inclusive ranges. Raises InputError for none or negative ones."""
    found = np.unique(indices)
    if not len(found):
        raise InputError(f"{name} contains no atom")
    if found[0] < 0:
        raise InputError(f"{name} has the index {found[0]}; indices of atoms count from 0")
    runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    ranges = (f"{run[0]}" if len(run) == 1 else f"{run[0]}:{run[-1]}" for run in runs)
    return IndexText(f"index {' '.join(ranges)}", n_atoms)


def text_within(name: str, given: Any, structure: object) -> str:
    """Convert an MDAnalysis group to a selection string for a structure.

    structure : if it is a group of the same universe, indices refer to its atoms, otherwise to those of the universe

    Raises InputError for atoms that are not in the structure.
    """
    if not is_group(structure) or structure.universe is not given.universe:  # type: ignore[attr-defined]
        return selection_text(name, given)
    own = structure.atoms.indices  # type: ignore[attr-defined]
    places = {int(index): k for k, index in enumerate(own)}
    try:
        chosen = [places[int(index)] for index in given.atoms.indices]
    except KeyError as error:
        raise InputError(f"{name} has the atom {error} of the universe, which is not in the structure") from None
    return index_text(name, np.array(chosen, np.int64), len(own))
