"""Analysis of residue replacements: changes of atoms, charge and configuration.

PDBFixer replaces residues by atom names, so these must have the same meaning in both residues: atoms bonded in the
standard residue must be bonded in the file. An exception is pseudouridine, whose ring atoms are renamed to those of
uridine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..atoms.chemistry import PHOSPHORESIDUES, is_nucleotide
from ..atoms.graphs import Graph, bonds_by_distance
from .building import LINKS, name

if TYPE_CHECKING:
    from openmm.app.topology import Residue

_STRETCHED = 2.3  # maximum length of bonds between heavy atoms, A
_LINK = 2.0  # maximum length of bonds between residues, A
_CHARGES = {"LYS": 1, "ARG": 1, "ASP": -1, "GLU": -1}  # charges of side chains at pH 7, e
_TELLING = {"LYS": "NZ", "ARG": "CZ", "ASP": "CG", "GLU": "CD"}  # atom required to determine the charge
# Nitrogens of bases without hydrogen and sugar, which are cationic with a substituent.
_BARE = {"A": ("N1", "N3", "N7"), "G": ("N3", "N7"), "C": ("N3",)}
_BACKBONE = {"N", "CA", "C", "O", "OXT"}
_STRAND = {"P", "OP1", "OP2", "OP3", "O5'", "C5'", "C4'", "O4'", "C3'", "O3'", "C2'", "C1'"}
_AMINE = 1.41  # A; longer C-N bonds are single bonds of basic nitrogens
# In pseudouridine, C5 is bonded to the sugar. Corresponding atoms of uridine: name and element.
_PSEUDOURIDINE = {
    "C5": ("N1", "N"), "N1": ("C5", "C"), "C4": ("C2", "C"), "C2": ("C4", "C"), "O4": ("O2", "O"), "O2": ("O4", "O"),
}  # fmt: skip
_PYRIMIDINES = ("U", "C", "DU", "DT", "DC")
# Stereocentres of L residues, and neighbours with a positive signed volume.
_CENTRES: dict[str, tuple[tuple[str, tuple[str, str, str]], ...]] = {
    "": (("CA", ("N", "C", "CB")),),
    "THR": (("CB", ("CA", "OG1", "CG2")),),
    "ILE": (("CB", ("CA", "CG1", "CG2")),),
}
_DOUBLE = 1.33  # A; shorter C-O bonds belong to carbonyls or carboxylates
_FLAT = 0.5  # A^3; smaller volumes mean a flat centre

Near = Mapping[str, list[str]]


@dataclass
class Replaced:
    """Changes of a replaced residue.

    residue : the residue, such as `A:SEP241`; kind : its residue name; standard : name of the standard residue
    lost : removed heavy atoms; charge : charges before and after at pH 7, e; None if unknown
    mirrored : centres with inverted configuration; renamed : True if atoms are renamed
    """

    residue: str
    kind: str
    standard: str
    lost: list[str]
    charge: tuple[int, int] | None
    mirrored: list[str] = field(default_factory=list)
    renamed: bool = False

    @property
    def change(self) -> int:
        """Charge change, e."""
        return 0 if self.charge is None else self.charge[1] - self.charge[0]

    @property
    def parts(self) -> list[str]:
        """Descriptions of the changes; empty if only the residue name changes."""
        told = []
        if self.renamed:
            told.append("its ring is bonded to the sugar through C5, and its atoms are renamed accordingly")
        if self.lost:
            told.append(f"{', '.join(self.lost)} {'were' if len(self.lost) > 1 else 'was'} removed")
        if self.charge is not None and self.change:
            before, after = self.charge
            shrinks = abs(after) < abs(before) and before * after >= 0
            how = f"lost {before - after:+d} e" if shrinks else f"gained {after - before:+d} e"
            told.append(f"it {how}: its charge was {before:+d}, and is {after:+d}".replace("+0", "0"))
        if self.mirrored:
            what = "D configuration" if "CA" in self.mirrored else "other configuration"
            told.append(f"it keeps its {what} at {' and '.join(self.mirrored)} with the name of the L residue")
        return told


def sentences(replaced: list[Replaced]) -> list[str]:
    """Return messages about residues with changes other than the name, grouping equal ones."""
    groups: dict[tuple[str, ...], list[Replaced]] = {}
    for of in replaced:
        if of.parts:
            groups.setdefault((of.kind, of.standard, *of.parts), []).append(of)
    return [
        f"{_few([of.residue for of in some])}: {kind} was replaced by {standard}; {'; '.join(parts)}{_instead_of(kind)}"
        for (kind, standard, *parts), some in groups.items()
    ]


def _instead_of(kind: str) -> str:
    """Return advice for a residue that is removed although there are parameters for it, else ""."""
    if kind not in PHOSPHORESIDUES:
        return ""
    return (
        f"; to keep {kind}, do not use `prepare`, but give `energy` and the other commands a file to which another "
        f"program added all hydrogens: they have parameters for {kind}"
    )


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


@dataclass(frozen=True)
class Standard:
    """Heavy atoms and bonds of a standard residue, by name."""

    name: str
    atoms: frozenset[str]
    bonds: tuple[tuple[str, str], ...]


def examine(
    residue: Residue, standard: Standard, positions: Floats, before: Residue | None, after: Residue | None
) -> Replaced | str:  # fmt: skip
    """Determine the changes of a residue, or the reason why it cannot be replaced.

    positions : (n, 3) A of all atoms; before, after : adjacent residues in the chain
    """
    own = {a.name: a for a in residue.atoms() if a.element is not None and a.element.symbol not in "HD"}
    where = {atom: positions[of.index] for atom, of in own.items()}
    elements = {atom: of.element.symbol for atom, of in own.items()}
    renamed = _is_pseudouridine(standard.name, where)
    if renamed:
        where, elements = _as_uridine(where, elements)
    stretched = next(
        (
            (one, other, away)
            for one, other in standard.bonds
            if one in where and other in where and (away := _apart(where, one, other)) > _STRETCHED
        ),
        None,
    )
    if stretched is not None:
        one, other, away = stretched
        return f"{one} and {other} are {away:.1f} A apart, which are bonded in {standard.name}"
    link = _other_link(where, standard, positions, after)
    if link:
        return link
    kept = {atom for atom in where if atom in standard.atoms}
    charge = _charge(standard, where, elements, is_first=before is None)
    return Replaced(
        residue=name(residue), kind=residue.name, standard=standard.name, lost=[a for a in where if a not in kept],
        charge=charge, mirrored=_mirrored(standard, where), renamed=renamed,
    )  # fmt: skip


def rename_ring(residue: Residue, elements: Mapping[str, object]) -> None:
    """Rename the atoms of a pseudouridine to those of uridine. elements : OpenMM's elements by symbol"""
    for atom in residue.atoms():
        if atom.name in _PSEUDOURIDINE:
            atom.name, symbol = _PSEUDOURIDINE[atom.name]
            atom.element = elements[symbol]


def _is_pseudouridine(standard: str, where: Mapping[str, Floats]) -> bool:
    """Return whether the sugar is bonded to C5 of the ring instead of N1."""
    if standard not in _PYRIMIDINES or not {"C1'", "C5", "N1"} <= where.keys():
        return False
    return _apart(where, "C1'", "C5") < _LINK < _apart(where, "C1'", "N1")


def _as_uridine(
    where: Mapping[str, Floats], elements: Mapping[str, str]
) -> tuple[dict[str, Floats], dict[str, str]]:  # fmt: skip
    new = {atom: _PSEUDOURIDINE.get(atom, (atom, elements[atom])) for atom in where}
    return (
        {new[atom][0]: place for atom, place in where.items()},
        {new[atom][0]: new[atom][1] for atom in where},
    )


def _other_link(
    where: Mapping[str, Floats], standard: Standard, positions: Floats, after: Residue | None
) -> str:  # fmt: skip
    """Describe a bond to the next residue from another atom than in the standard residue; "" if there is none."""
    if after is None:
        return ""
    there = {atom.name: positions[atom.index] for atom in after.atoms()}
    for tail, head in LINKS:
        if tail not in standard.atoms or head not in there:
            continue
        lengths = {atom: float(np.linalg.norm(place - there[head])) for atom, place in where.items()}
        nearest = min(lengths, key=lambda atom: lengths[atom])
        if nearest != tail and lengths[nearest] < _LINK - 0.3 and lengths.get(tail, np.inf) > _LINK:
            return f"{nearest} is bonded to the next residue, where {standard.name} has {tail}"
    return ""


def _apart(where: Mapping[str, Floats], one: str, other: str) -> float:
    return float(np.linalg.norm(where[one] - where[other]))


# Charge


def _charge(
    standard: Standard, where: Mapping[str, Floats], elements: Mapping[str, str], is_first: bool
) -> tuple[int, int] | None:
    """Return the charges at pH 7, e, of a residue and of the standard one, without backbone; None if unknown."""
    after = _CHARGES.get(standard.name, 0)
    if standard.name in _TELLING and _TELLING[standard.name] not in where:
        return None
    names = list(where)
    graph = Graph.of([elements[a] for a in names], bonds_by_distance([elements[a] for a in names], _stacked(where)))
    near = {names[i]: [names[j] for j in of] for i, of in enumerate(graph.neighbours)}
    if is_nucleotide(standard.name):
        return _of_base(standard.name, where, elements, near), 0
    before = sum(_of_atom(atom, where, elements, near) for atom in names if atom not in _BACKBONE)
    if standard.name == "HIS" and all(
        any(of not in standard.atoms for of in near.get(atom, ())) for atom in ("ND1", "NE2")
    ):
        before += 1
    if is_first and "N" in near:  # an acyl group removes the charge of the N-terminal nitrogen
        is_acyl = any(_is_carbonyl(of, where, elements, near) for of in near["N"] if of != "CA")
        before, after = before + (not is_acyl), after + 1
    return before, after


def _stacked(where: Mapping[str, Floats]) -> Floats:
    return np.array(list(where.values()), np.float64).reshape(-1, 3)


def _of_base(standard: str, where: Mapping[str, Floats], elements: Mapping[str, str], near: Near) -> int:
    """Return the charge of a modified base and of groups on its sugar."""
    letter = standard.removeprefix("D")[:1]
    ring = {atom for atom in where if len(atom) == 2 and atom[0] in "NC" and atom[1].isdigit()}
    bare = sum(any(of not in ring for of in near.get(atom, ())) for atom in _BARE.get(letter, ()))
    own = [atom for atom in where if atom not in _STRAND and atom not in ring and not atom.startswith("N")]
    groups = sum(_of_atom(atom, where, elements, near) for atom in own)
    amines = sum(
        _of_atom(atom, where, elements, near)
        for atom in where
        if elements[atom] == "N" and atom not in ring and not any(of in ring for of in near[atom])
        and atom not in own
    )  # fmt: skip
    return bare + groups + amines


def _of_atom(atom: str, where: Mapping[str, Floats], elements: Mapping[str, str], near: Near) -> int:
    """Return the charge of the group centred on an atom: phosphate, sulphate, carboxylate, amine or guanidine."""
    element = elements[atom]
    oxygens = sum(elements[of] == "O" and len(near[of]) == 1 for of in near[atom])
    if element == "P":
        return -min(2, max(0, oxygens - 1))
    if element == "S":
        return -(oxygens == 3 or (oxygens == 2 and len(near[atom]) == 3))
    if element == "C":
        nitrogens = [of for of in near[atom] if elements[of] == "N"]
        is_guanidine = len(nitrogens) == 3 and not any(
            _is_carbonyl(c, where, elements, near) for n in nitrogens for c in near[n]
        )
        return int(is_guanidine) - (oxygens >= 2 and len(near[atom]) == 3)
    if element == "N":
        is_amine = all(elements[of] == "C" and _apart(where, atom, of) > _AMINE for of in near[atom])
        return int(
            is_amine and bool(near[atom]) and not any(_is_carbonyl(of, where, elements, near) for of in near[atom])
        )
    return 0


def _is_carbonyl(atom: str, where: Mapping[str, Floats], elements: Mapping[str, str], near: Near) -> bool:
    """Return whether an atom is a carbon with a double-bonded oxygen, by distance."""
    return elements[atom] == "C" and any(
        elements[of] == "O" and len(near[of]) == 1 and _apart(where, atom, of) < _DOUBLE for of in near[atom]
    )


# Configuration


def _mirrored(standard: Standard, where: Mapping[str, Floats]) -> list[str]:
    """Return the centres of an amino acid with inverted configuration."""
    centres = () if is_nucleotide(standard.name) else (*_CENTRES[""], *_CENTRES.get(standard.name, ()))
    return [centre for centre, around in centres if _volume(where, centre, around) < -_FLAT]


def _volume(where: Mapping[str, Floats], centre: str, around: tuple[str, ...]) -> float:
    """Return the signed volume of three neighbours around a centre, A^3; 0 if an atom is missing."""
    if not {centre, *around} <= where.keys():
        return 0.0
    return float(np.linalg.det(np.array([where[atom] - where[centre] for atom in around])))
