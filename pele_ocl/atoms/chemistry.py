"""Residue and atom names: kinds of residues, their names in other programs, elements of atoms.

Residue kinds and element symbols are gemmi's tables, with the names that force fields add for protonation states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gemmi

PHOSPHORESIDUES = ("SEP", "TPO", "PTR", "S1P", "T1P", "Y1P")  # whose templates AmberTools has
AMINO_ACIDS = frozenset("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split())
# Protonation states, disulphides and caps in the dialects of Amber, CHARMM, GROMACS and PELE.
_PEPTIDE_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("HIS", "HID", "HIE", "HIP", "HSD", "HSE", "HSP", "HISA", "HISB", "HISH", "HISD", "HISE", "HISP"),
    ("CYS", "CYT", "CYM", "CYX", "CYSH", "CYS2"),
    ("ASP", "ASH", "ASPP", "ASPH"),
    ("GLU", "GLH", "GLUP", "GLUH"),
    ("LYS", "LYN", "LSN", "LYSH"),
    ("ARG", "ARN", "ARGN"),
    ("NME", "NMA", "CT3"),
    ("NHE", "NH2", "CT2"),
)
_POLYMER_VARIANTS = frozenset(name for family in _PEPTIDE_FAMILIES for name in family) | {"ACE"}
# Amber's names of nucleotides and of those at the ends of a strand.
_NUCLEOTIDE_VARIANTS = re.compile("[DR][ACGTU][35N]?")
_AMBER_ENDS = re.compile("[ACGTU][35]")
# Names of nucleotides that others may have, too: thymidine, AMBER's nucleosides; and CHARMM's, which are those of free
# bases, and CYT of a cysteine. The sugar tells.
_AMBIGUOUS_NUCLEOTIDE = re.compile("T|[ACGTU]N|ADE|CYT|GUA|THY|URA")
_WATERS_OF_3_SITES = ("HOH", "WAT", "TIP", "TIP3", "TP3", "T3P", "SOL", "SPC", "SPCE", "H2O", "DOD")
_WATERS = frozenset((*_WATERS_OF_3_SITES, "TIP4", "TIP5", "T4P", "TP4", "TP5"))
_CHARMM_IONS = {"SOD": "Na", "POT": "K", "CLA": "Cl", "CAL": "Ca", "CES": "Cs", "LIT": "Li", "RUB": "Rb", "BAR": "Ba"}
# Names of one residue in its protonation states and dialects: the atoms that are present decide which it is.
FAMILIES: tuple[tuple[str, ...], ...] = (
    *_PEPTIDE_FAMILIES,
    _WATERS_OF_3_SITES,
    ("DA", "A", "RA", "ADE"),
    ("DC", "C", "RC", "CYT"),
    ("DG", "G", "RG", "GUA"),
    ("DT", "T", "THY"),
    ("U", "RU", "URA"),
    ("MG", "MG2"),
    *((symbol.upper(), name) for name, symbol in _CHARMM_IONS.items()),
)
_POLYMER_ELEMENTS = frozenset("HDCNOPS")
# Two-letter elements that names of ligand atoms start with even where the name is not aligned by element; NA, CA, CD,
# HG or CO are more often nitrogen, carbon and hydrogen there.
_UNMISTAKABLE = frozenset("Cl Br Fe Zn Mg Mn Se Si Li Al Cu Ni".split())


@cache
def is_water(residue: str) -> bool:
    """Return whether a residue name means water."""
    return residue.upper() in _WATERS or _tabulated(residue.upper()).is_water()


def _tabulated(residue: str) -> gemmi.ResidueInfo:
    import gemmi  # takes longer to load than all of this room

    return gemmi.find_tabulated_residue(residue)


def _element(symbol: str) -> gemmi.Element:
    import gemmi

    return gemmi.Element(symbol)


@cache
def is_polymer(residue: str) -> bool:
    """Return whether a residue name means an amino acid, a nucleotide or a cap of a peptide chain."""
    name = residue.upper()
    found = _tabulated(name)
    tabulated = found.is_amino_acid() or found.is_nucleic_acid()
    # Programs that prepare ligands call them UNK, which is the PDB's name of an unknown amino acid.
    return _is_standard(name) or (bool(tabulated) and name != "UNK")


@cache
def is_nucleotide(residue: str, has_sugar: bool = False) -> bool:
    """Return whether a residue name means a nucleotide, by the names of the PDB, of Amber and of CHARMM.

    has_sugar : whether the residue has an atom C1', without which T, AN or CHARMM's ADE do not mean one
    """
    name = residue.upper()
    known = _NUCLEOTIDE_VARIANTS.fullmatch(name) or _AMBER_ENDS.fullmatch(name)
    if has_sugar and known is None:
        known = _AMBIGUOUS_NUCLEOTIDE.fullmatch(name)
    return known is not None or (name != "N" and bool(_tabulated(name).is_nucleic_acid()))


def element(name: str, residue: str, column: str = "") -> str:
    """Return the element symbol of an atom, "X" if nothing tells it.

    Convention fixes the names in standard residues, waters and monatomic ions; there they win over the file's element
    column. Elsewhere the column wins, and without one the name decides.

    name : four columns as in a PDB file, the first blank for elements of one letter. A shorter name is taken as not
        aligned
    column : the element column; a charge may follow the symbol ("N1+")
    """
    return (
        _by_convention(name.strip(), residue.upper())
        or _symbol(re.sub(r"[\s\d+-]+$", "", column.strip()))
        or _by_alignment(f" {name}" if is_polymer(residue) else name)
        or "X"
    )


def tidy_element(symbol: str) -> str:
    """`CL` and `cl` as `Cl`; deuterium as H."""
    symbol = symbol.strip().capitalize()
    return "H" if symbol in ("D", "T") else symbol


@cache
def covalent_radius(symbol: str) -> float:
    """Covalent radius of an element, A (Cordero et al. 2008); carbon's where the element is unknown."""
    found = _element(symbol)
    return float(found.covalent_r if found.atomic_number else _element("C").covalent_r)


def aligned_name(name: str, symbol: str) -> str:
    """An atom name in the four columns that a PDB file gives it."""
    return name.ljust(4) if len(symbol) == 2 or len(name) == 4 else f" {name}".ljust(4)


@cache
def _is_standard(name: str) -> bool:
    """Return whether a residue's atom names follow the convention of the twenty amino acids and of nucleotides."""
    terminal = len(name) == 4 and name[0] in "NC" and _is_standard(name[1:])
    known = name in _POLYMER_VARIANTS or _NUCLEOTIDE_VARIANTS.fullmatch(name) is not None
    return terminal or known or (name != "UNK" and bool(_tabulated(name).is_standard()))


def _by_convention(name: str, residue: str) -> str:
    letters = re.sub(r"[^A-Z]", "", name.upper())
    if residue in ("MSE", "SEC") and letters == "SE":
        return "Se"
    if _is_standard(residue) or is_water(residue) or residue in ("MSE", "SEC"):
        return letters[:1] if letters[:1] in _POLYMER_ELEMENTS else ""
    if letters and letters == re.sub(r"[^A-Z]", "", residue):
        return _CHARMM_IONS.get(letters, "") or _symbol(letters)
    return ""


def _by_alignment(name: str) -> str:
    letters = re.sub(r"^[^A-Za-z]+", "", name)
    two = _symbol(letters[:2])
    if len(two) == 2:
        if len(name) < 4 or len(name.strip()) == 4:
            aligned = two in _UNMISTAKABLE
        else:
            aligned = name[0].isalpha() and two[0] != "H"
        if aligned:
            return two
    return _symbol(letters[:1])


def _symbol(text: str) -> str:
    """A valid element symbol in its usual case, or ""."""
    if not text.isascii() or not text.isalpha() or len(text) > 2:
        return ""
    found = _element(text)
    return str(found.name) if found.atomic_number > 0 else ""


def counted_names(elements: Sequence[str]) -> list[str]:
    """Name atoms C1, C2, H1 ...: each element counted from 1."""
    seen: dict[str, int] = {}
    names = []
    for element in elements:
        seen[element] = seen.get(element, 0) + 1
        names.append(f"{element.upper()}{seen[element]}")
    return names
