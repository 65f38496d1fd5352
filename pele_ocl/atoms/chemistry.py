"""Residue and atom names: kinds of residues, residue names in other programs, elements of atoms.

Residue kinds and element symbols come from gemmi's tables, extended by force-field names of protonation states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gemmi

PHOSPHORESIDUES = ("SEP", "TPO", "PTR", "S1P", "T1P", "Y1P")  # residues with templates in AmberTools
AMINO_ACIDS = frozenset("ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split())
# Names of protonation states, disulphides and caps in Amber, CHARMM, GROMACS and PELE.
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
# Amber names of nucleotides, inside a strand and at its ends.
_NUCLEOTIDE_VARIANTS = re.compile("[DR][ACGTU][35N]?")
_AMBER_ENDS = re.compile("[ACGTU][35]")
# Names that are also used for other residues: thymidine, Amber's nucleosides, and CHARMM's nucleotides, whose names are
# also those of free bases or, for CYT, of a cysteine. Nucleotides are recognized by the sugar.
_AMBIGUOUS_NUCLEOTIDE = re.compile("T|[ACGTU]N|ADE|CYT|GUA|THY|URA")
_WATERS_OF_3_SITES = ("HOH", "WAT", "TIP", "TIP3", "TP3", "T3P", "SOL", "SPC", "SPCE", "H2O", "DOD")
_WATERS = frozenset((*_WATERS_OF_3_SITES, "TIP4", "TIP5", "T4P", "TP4", "TP5"))
_CHARMM_IONS = {"SOD": "Na", "POT": "K", "CLA": "Cl", "CAL": "Ca", "CES": "Cs", "LIT": "Li", "RUB": "Rb", "BAR": "Ba"}
# Names of one residue in its protonation states and in different programs; the atoms decide which state it is.
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
# Two-letter elements that are recognized in ligand atom names without column alignment. NA, CA, CD, HG and CO are not
# among them, because there they are usually nitrogen, carbon or hydrogen.
_UNMISTAKABLE = frozenset("Cl Br Fe Zn Mg Mn Se Si Li Al Cu Ni".split())


@cache
def is_water(residue: str) -> bool:
    """Return whether a residue name is that of water."""
    return residue.upper() in _WATERS or _tabulated(residue.upper()).is_water()


def _tabulated(residue: str) -> gemmi.ResidueInfo:
    import gemmi  # slow to import

    return gemmi.find_tabulated_residue(residue)


def _element(symbol: str) -> gemmi.Element:
    import gemmi

    return gemmi.Element(symbol)


@cache
def is_polymer(residue: str) -> bool:
    """Return whether a residue name is that of an amino acid, a nucleotide or a peptide cap."""
    name = residue.upper()
    found = _tabulated(name)
    tabulated = found.is_amino_acid() or found.is_nucleic_acid()
    # UNK is an unknown amino acid in the PDB, but programs that prepare ligands use it, too.
    return _is_standard(name) or (bool(tabulated) and name != "UNK")


@cache
def is_nucleotide(residue: str, has_sugar: bool = False) -> bool:
    """Return whether a residue name is that of a nucleotide in the PDB, Amber or CHARMM.

    has_sugar : True if the residue has an atom C1'; names such as T, AN or ADE are nucleotides only then
    """
    name = residue.upper()
    known = _NUCLEOTIDE_VARIANTS.fullmatch(name) or _AMBER_ENDS.fullmatch(name)
    if has_sugar and known is None:
        known = _AMBIGUOUS_NUCLEOTIDE.fullmatch(name)
    return known is not None or (name != "N" and bool(_tabulated(name).is_nucleic_acid()))


def element(name: str, residue: str, column: str = "") -> str:
    """Return the element symbol of an atom, "X" if it is unknown.

    In standard residues, waters and monatomic ions, the atom name has priority over the element column. In other
    residues the column has priority, and the name is used if the column is empty.

    name : the four columns of a PDB file, with a leading blank for one-letter elements; shorter names are treated as
        not aligned
    column : the element column, in which the symbol may be followed by a charge ("N1+")
    """
    return (
        _by_convention(name.strip(), residue.upper())
        or _symbol(re.sub(r"[\s\d+-]+$", "", column.strip()))
        or _by_alignment(f" {name}" if is_polymer(residue) else name)
        or "X"
    )


def tidy_element(symbol: str) -> str:
    """Normalize an element symbol: `CL` and `cl` to `Cl`, deuterium and tritium to H."""
    symbol = symbol.strip().capitalize()
    return "H" if symbol in ("D", "T") else symbol


@cache
def covalent_radius(symbol: str) -> float:
    """Return the covalent radius of an element, A (Cordero et al. 2008); that of carbon for unknown elements."""
    found = _element(symbol)
    return float(found.covalent_r if found.atomic_number else _element("C").covalent_r)


def aligned_name(name: str, symbol: str) -> str:
    """Format an atom name for the four columns of a PDB file."""
    return name.ljust(4) if len(symbol) == 2 or len(name) == 4 else f" {name}".ljust(4)


@cache
def _is_standard(name: str) -> bool:
    """Return whether the atom names of a residue follow the conventions of standard amino acids and nucleotides."""
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
    """Return a valid element symbol in its usual case, or ""."""
    if not text.isascii() or not text.isalpha() or len(text) > 2:
        return ""
    found = _element(text)
    return str(found.name) if found.atomic_number > 0 else ""


def counted_names(elements: Sequence[str]) -> list[str]:
    """Generate atom names C1, C2, H1, ..., numbered from 1 for each element."""
    seen: dict[str, int] = {}
    names = []
    for element in elements:
        seen[element] = seen.get(element, 0) + 1
        names.append(f"{element.upper()}{seen[element]}")
    return names
