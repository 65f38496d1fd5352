"""Terms as the sections of an AMBER topology list them: some atoms, and the number of a set of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints
from ...errors import FormatError
from .counts import Counts
from .fields import Integers
from .sections import Sections


@dataclass(frozen=True, eq=False)
class Terms:
    """m terms.

    atoms : (m, k) indices, from 0
    negative : (m, k) True where the file has a minus before the atom, which only torsions may have
    types : (m,) the set of parameters, from 0
    """

    atoms: Ints
    negative: NDArray[np.bool_]
    types: Integers


def read_terms(
    sections: Sections, counts: Counts, tables: Sequence[tuple[str, int]], n_members: int, n_types: int,
    *, numbered: bool = False,
) -> Terms:  # fmt: skip
    """The terms of several sections, one behind the other.

    tables : names of sections, and how many terms each holds
    n_members, n_types : atoms of a term, and sets of parameters there are
    numbered : whether atoms have their numbers from 1, as in CHARMM's sections; else the file has 3 times the index

    Raises FormatError, with the line, for atoms and parameters that are not there, and for an atom twice in a term.
    """
    found = [_read_table(sections, counts.atoms, *table, n_members, n_types, numbered) for table in tables]
    return Terms(*(np.concatenate([getattr(t, name) for t in found]) for name in ("atoms", "negative", "types")))


def _read_table(
    sections: Sections, n_atoms: int, name: str, count: int, n_members: int, n_types: int, numbered: bool
) -> Terms:
    rows = sections.whole_numbers(name, count * (n_members + 1)).reshape(count, n_members + 1)
    pointers, types = rows[:, :-1], rows[:, -1]
    size = np.abs(pointers)
    atoms = size - 1 if numbered else size // 3
    negative = pointers < 0
    stray = (atoms < 0) | (atoms >= n_atoms) | (~np.bool_(numbered) & (size % 3 != 0))
    stray |= negative & (np.arange(n_members) < (2 if n_members == 4 and not numbered else n_members))
    ordered = np.sort(atoms, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    for wrong, fault in (
        (stray.any(axis=1), f"an atom that is not there; there are {n_atoms:,}"),
        ((types < 1) | (types > n_types), f"parameters that are not there; there are {n_types:,} sets"),
        (twice, "an atom twice"),
    ):
        if wrong.any():
            k = int(np.argmax(wrong))
            raise FormatError(f"{sections.at(name, k * (n_members + 1))}: term {k + 1} names {fault}")
    return Terms(atoms.astype(np.int32), negative, types - 1)


def read_parameters(sections: Sections, names: Sequence[str], n_types: int, terms: Terms) -> Floats:
    """The parameters of each term, (m, p). names : a section of n_types values for each parameter"""
    sets = [sections.numbers(name, n_types) for name in names]
    return np.column_stack([values[terms.types] for values in sets])
