"""Monatomic ions that can be placed."""

from __future__ import annotations

from dataclasses import dataclass

from ..common.arguments import described
from ..common.errors import InputError


@dataclass(frozen=True)
class Species:
    """A monatomic ion. name : residue name in the PDB; charge : e"""

    name: str
    charge: int
    element: str

    @property
    def atom(self) -> str:
        """Atom name in the PDB: the element symbol in capitals."""
        return self.element.upper()


SPECIES = {
    species.name: species
    for species in (
        Species("LI", 1, "Li"),
        Species("NA", 1, "Na"),
        Species("K", 1, "K"),
        Species("RB", 1, "Rb"),
        Species("CS", 1, "Cs"),
        Species("CU1", 1, "Cu"),
        Species("AG", 1, "Ag"),
        Species("MG", 2, "Mg"),
        Species("CA", 2, "Ca"),
        Species("SR", 2, "Sr"),
        Species("BA", 2, "Ba"),
        Species("MN", 2, "Mn"),
        Species("FE2", 2, "Fe"),
        Species("CO", 2, "Co"),
        Species("NI", 2, "Ni"),
        Species("CU", 2, "Cu"),
        Species("ZN", 2, "Zn"),
        Species("CD", 2, "Cd"),
        Species("HG", 2, "Hg"),
        Species("AL", 3, "Al"),
        Species("FE", 3, "Fe"),
        Species("F", -1, "F"),
        Species("CL", -1, "Cl"),
        Species("BR", -1, "Br"),
        Species("IOD", -1, "I"),
    )
}
# Common other names. In the PDB, I is inosine, and iodide is IOD.
_ALIASES = {"I": "IOD", "MG2": "MG", "CA2": "CA", "ZN2": "ZN", "FE3": "FE", "CU2": "CU"}


def find_species(name: str) -> Species:
    """Return the species with a name, in upper or lower case and with or without the charge sign (`Na+`).

    Raises InputError for an unknown name.
    """
    if not isinstance(name, str):
        raise InputError(f"the name of an ion is {described(name)}; choose one of {', '.join(SPECIES)}")
    key = name.strip().upper().rstrip("+-")
    key = _ALIASES.get(key, key)
    if key not in SPECIES:
        raise InputError(f"unknown ion {name!r}; choose one of {', '.join(SPECIES)}")
    return SPECIES[key]
