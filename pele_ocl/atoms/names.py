"""Alternative names of residues, and canonical atom names.

`canonical` maps the atom names of PDB versions 2 and 3, Amber, CHARMM, GROMACS and PELE to one set of names, for amino
acids, nucleotides, caps, water and ions. Lists of atom names of one residue then agree, whichever program wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from .chemistry import AMINO_ACIDS, FAMILIES

# Amino acids in all protonation states.
_PROTONATED = {name for family in FAMILIES if AMINO_ACIDS & set(family) for name in family} | AMINO_ACIDS


@lru_cache(maxsize=1000)
def residue_names(name: str) -> tuple[str, ...]:
    """List the possible names of a residue in force fields, starting with its own: HIS, HID, HIE, HIP, ..."""
    name = name.upper()
    names = [name]
    if len(name) == 4 and name[0] in "NC" and name[1:] in _PROTONATED:  # Amber's NALA and CALA
        names.append(name[1:])
    if re.fullmatch("[DR]?[ACGTU][35N]", name):  # Amber's DA5, RA3, DAN
        names.append(name[:-1])
    if re.fullmatch(r"[A-Z]{1,2}\d?[+-]\d?", name):  # NA+, CL-, MG2+, MG+2
        names.append(re.sub(r"[\d+-]", "", name))
    family = [other for names_ in FAMILIES for other in names_ if set(names) & set(names_)]
    return tuple(dict.fromkeys(names + family))


def canonical(names: Sequence[str]) -> tuple[str, ...]:
    """Return the canonical atom names of one residue, in the same order.

    Hydrogens on the same heavy atom, which are equivalent in all force fields, are numbered by the order of their
    names, so HB1 and HB2 match HB2 and HB3. Names in unknown residues are not changed.
    """
    letters = "".join(sorted(next((c for c in name if c.isalpha()), "X") for name in names))
    if len(names) == 1:
        return ("ION",)
    if letters in ("HHO", "HHN", "CCHHHO", "CHHHHN"):
        return _small_group(names)
    moved = [digit_last(name).replace("*", "'") for name in names]
    if {"N", "CA", "C"} <= set(moved):
        return _number_hydrogens(_amino_acid(moved))
    if {"C1'", "C4'"} <= set(moved):
        return _number_hydrogens([_nucleotide(name) for name in moved])
    return tuple(names)


def capitals(name: str) -> str:
    """Convert a name to capitals and deuterium to hydrogen: `hb1` to HB1, DB1 to HB1, 1DB to 1HB."""
    return re.sub(r"^(\d?)D", r"\1H", name.upper())


def canonical_capitals(names: Sequence[str]) -> tuple[str, ...]:
    """Apply `canonical` to the names in capitals."""
    return canonical([capitals(name) for name in names])


# Spellings of the atom names of a residue, tried in this order.
SPELLINGS: tuple[Callable[[Sequence[str]], tuple[str, ...]], ...] = (tuple, canonical, canonical_capitals)


def differences(names: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names missing in `others` and the names only in `others`. Alternative spellings are equal."""
    lacking = [name for name in names if name not in others]
    more = [name for name in others if name not in names]
    mine, theirs = _sites(names), _sites(others)
    for name in tuple(lacking):
        partner = next((other for other in more if theirs[other] == mine[name]), None)
        if partner is not None:
            lacking.remove(name)
            more.remove(partner)
    return lacking, more


def _sites(names: Sequence[str]) -> dict[str, str]:
    """Map each name to its canonical name without the hydrogen number."""
    return {name: key.split("#")[0] for name, key in zip(names, canonical_capitals(names), strict=True)}


def digit_last(name: str) -> str:
    """Move the leading digit of a hydrogen name in PDB version 2 to the end: 1HB to HB1, 2HD1 to HD12."""
    return name[1:] + name[0] if re.match(r"\dH", name) else name


def _small_group(names: Sequence[str]) -> tuple[str, ...]:
    """Return canonical names for water and the caps ACE, NME and NHE, which follow from the elements."""
    has_carbonyl = any(digit_last(name).startswith("O") for name in names)
    amide = next((h for h in ("H", "HN", "HNT") if h in names), None) if "N" in "".join(names) else None
    common: list[str] = []
    hydrogens = sorted((digit_last(name), name) for name in names if digit_last(name)[0] == "H" and name != amide)
    rank = {name: f"H#{i}" for i, (_, name) in enumerate(hydrogens)}
    for name in names:
        letter = next(c for c in name if c.isalpha())
        if letter == "C":
            common.append("C" if has_carbonyl and name in ("C", "CY") else "CH3")
        elif letter == "H":
            common.append(rank.get(name, "H"))
        else:
            common.append(letter)
    return tuple(common)


def _amino_acid(names: list[str]) -> list[str]:
    renamed = {"HN": "H", "HN1": "H1", "HN2": "H2", "HN3": "H3", "HT1": "H1", "HT2": "H2", "HT3": "H3"}
    for first, second in (("O1", "O2"), ("OT1", "OT2"), ("OC1", "OC2"), ("O'", "O''"), ("O", "OT")):
        if {first, second} <= set(names):
            renamed |= {first: "O", second: "OXT"}
    if {"CG1", "CG2", "CD"} <= set(names):  # isoleucine
        renamed |= {"CD": "CD1", "HD1": "HD11", "HD2": "HD12", "HD3": "HD13"}
    return [renamed.get(name, name) for name in names]


def _nucleotide(name: str) -> str:
    renamed = {"O1P": "OP1", "O2P": "OP2", "H5T": "HO5'", "H3T": "HO3'", "HO'2": "HO2'", "C5M": "C7"}
    renamed |= {"H5'1": "H5'", "H5'2": "H5''", "H2'1": "H2'", "H2'2": "H2''", "HO2'1": "HO2'", "HO'": "HO2'"}
    renamed |= {"H51": "H71", "H52": "H72", "H53": "H73", "H5M1": "H71", "H5M2": "H72", "H5M3": "H73"}
    return renamed.get(name, name)


def _number_hydrogens(names: list[str]) -> tuple[str, ...]:
    """Rename hydrogens to `H<remoteness>#<rank>` if their heavy atom (B: CB, G2: CG2) is present."""
    heavy = {name[1:] for name in names if not name.startswith("H")}
    on: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.startswith("H"):
            remoteness = next((r for r in (name[1:], re.sub(r"\d$", "", name[1:])) if r in heavy), None)
            if remoteness is not None:
                on.setdefault(remoteness, []).append(name)
    ranked = {name: f"H{remoteness}#{rank}" for remoteness in on for rank, name in enumerate(on[remoteness])}
    return tuple(ranked.get(name, name) for name in names)
