"""Names of the atoms and residues of an AMBER topology."""

from __future__ import annotations

import gemmi
import numpy as np

from ...atoms import Labels, Strings
from ...chemistry import element
from ...errors import FormatError
from .counts import Counts
from .sections import Sections

_HEAVIEST = 118
_SAME_MASS = 0.1  # u; hydrogens that were made heavier are no other element then


def read_labels(sections: Sections, counts: Counts) -> Labels:
    """The labels; numbers, chains and insertion codes of residues where the file has them, else numbers from 1.

    Raises FormatError, with section and line, where residues do not follow one another.
    """
    starts = sections.whole_numbers("RESIDUE_POINTER", counts.residues)
    wrong = np.diff(starts, prepend=0) < 1
    wrong[0] = starts[0] != 1
    wrong |= starts > counts.atoms
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at('RESIDUE_POINTER', k)}: residue {k + 1} begins with atom {starts[k]}; the first begins with "
            f"1, and each behind the one before, up to {counts.atoms:,}"
        )
    index = np.repeat(np.arange(counts.residues, dtype=np.int32), np.diff(starts, append=counts.atoms + 1))
    names = sections.texts("ATOM_NAME", counts.atoms)
    residue_names = sections.texts("RESIDUE_LABEL", counts.residues)
    numbers = np.arange(1, counts.residues + 1, dtype=np.int32)
    if "RESIDUE_NUMBER" in sections:
        given = sections.whole_numbers("RESIDUE_NUMBER", counts.residues)
        if np.abs(given).max() >= 2**31:
            k = int(np.abs(given).argmax())
            raise FormatError(f"{sections.at('RESIDUE_NUMBER', k)}: residue number {given[k]:,} is too large")
        numbers = given.astype(np.int32)
    return Labels(
        names=names,
        elements=_elements(sections, counts, names, residue_names[index]),
        residue_names=residue_names[index],
        residue_numbers=numbers[index],
        insertion_codes=_residue_texts(sections, counts, "RESIDUE_ICODE")[index],
        chains=_residue_texts(sections, counts, "RESIDUE_CHAINID")[index],
        residue_index=index,
    )


def _residue_texts(sections: Sections, counts: Counts, name: str) -> Strings:
    """A text for each residue, "" where the section is not there."""
    found = sections.optional_texts(name, counts.residues)
    return np.full(counts.residues, "") if found is None else found


def _elements(sections: Sections, counts: Counts, names: Strings, residue_names: Strings) -> Strings:
    """Element symbols by ATOMIC_NUMBER; in older files by names in standard residues, by masses elsewhere."""
    if "ATOMIC_NUMBER" in sections:
        numbers = sections.whole_numbers("ATOMIC_NUMBER", counts.atoms)
        symbols = np.array(["X", *(gemmi.Element(k).name for k in range(1, _HEAVIEST + 1))])
        found: Strings = symbols[np.where((numbers >= 1) & (numbers <= _HEAVIEST), numbers, 0)]
        return found
    masses = sections.numbers("MASS", counts.atoms).tolist()
    by_mass = {mass: _by_mass(mass) for mass in set(masses)}
    rows = [*zip(names.tolist(), residue_names.tolist(), (by_mass[mass] for mass in masses), strict=True)]
    by_row = {row: element(*row) for row in set(rows)}
    return np.array([by_row[row] for row in rows])


def _by_mass(mass: float) -> str:
    """The element of a mass (u), "" where none has it."""
    symbols = [gemmi.Element(k) for k in range(1, _HEAVIEST + 1)]
    nearest = min(symbols, key=lambda symbol: abs(symbol.weight - mass))
    return str(nearest.name) if abs(nearest.weight - mass) < _SAME_MASS else ""
