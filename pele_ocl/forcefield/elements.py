"""The chemical element of an atom from its padded name, where a file does not state it."""

from __future__ import annotations

# Two-letter symbols that ligands, ions and cofactors bring; a carbon called CA is told from calcium by its column.
_TWO_LETTERS = frozenset(
    "Li Be Na Mg Al Si Cl Ca Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Zr Mo Ru Rh Pd Ag Cd In Sn Sb Te Xe Cs Ba "
    "La Ce Pt Au Hg Tl Pb Bi".split()
)


def element_of(padded_name: str) -> str:
    """The element of a four-column PDB name, blank or underscore padded: `_CA_` is C, `CA__` is Ca, `HG11` is H.

    The symbol ends in the second column, as the PDB format has it; a name that fills all four columns is a hydrogen
    if it begins with H. "X" where nothing fits.
    """
    columns = padded_name.replace("_", " ").ljust(4)
    symbol = columns[:2].capitalize()
    if columns.strip().startswith("H") and " " not in columns:
        return "H"
    if symbol in _TWO_LETTERS:
        return symbol
    letters = [letter for letter in columns if letter.isalpha()]
    return letters[0].upper() if letters else "X"


def tidy_element(symbol: str) -> str:
    """`CL` and `cl` as `Cl`; deuterium as H."""
    symbol = symbol.strip().capitalize()
    return "H" if symbol in ("D", "T") else symbol
