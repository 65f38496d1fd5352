"""The bonded terms of OpenMM's force-field files, as figures of IMPACT templates; a part of make_amber99sb.py.

K is in kcal/mol and without the factor 1/2, lengths in A, angles in degrees. Which definition serves which atoms is
OpenMM's rule: of torsions the first without a wildcard, else the first; the outer atoms of an improper take the order
of `improper`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from math import degrees, isclose, pi
from typing import NamedTuple, TypeVar

KCAL_PER_KJ = 1 / 4.184
ANGSTROM_PER_NM = 10
T = TypeVar("T")
_MASSES = {"H": 1, "C": 12, "N": 14, "O": 16, "P": 31, "S": 32}


class Atom(NamedTuple):
    """An atom of a graph: its name, its class and its element; second : whether it is of the second of two residues."""

    name: str
    class_: str
    element: str
    second: bool = False


Figures = tuple[float, ...]
Term = tuple[tuple[int, ...], list[Figures]]  # atoms, and the figures of each row


def short_class(name: str) -> str:
    """An atom class without the water model it was made for: `tip3p_standard-Zn2+` is Zn2+."""
    return name.removeprefix("tip3p_standard-").removeprefix("tip3p-")


class TermFigures:
    """Bonds, angles and torsions of a force-field file by the classes of their atoms."""

    def __init__(self, root: ET.Element) -> None:
        self._bonds = _both_ways([(_classes(e, 2), _harmonic(e, "length", ANGSTROM_PER_NM)) for e in root.iter("Bond")])
        self._angles = _both_ways([(_classes(e, 3), _harmonic(e, "angle", 1)) for e in root.iter("Angle")])
        self._propers = _both_ways([(_classes(e, 4), _periodic(e)) for e in root.iter("Proper")])
        self._impropers = [(_classes(e, 4), _periodic(e)) for e in root.iter("Improper")]

    def bond(self, *classes: str) -> Figures:
        """K and r0; K is 0 where the file has no such bond."""
        return self._bonds.get(classes, (0.0, 0.0))

    def angle(self, *classes: str) -> Figures:
        """K and theta0; K is 0 where the file has no such angle."""
        k, angle = self._angles.get(classes, (0.0, 0.0))
        return k, degrees(angle)

    def proper(self, *classes: str) -> list[Figures]:
        """K, sign and periodicity of each row."""
        if classes in self._propers:
            return self._propers[classes]
        fitting = (rows for pattern, rows in self._propers.items() if _fits(pattern, classes))
        return self._propers.setdefault(classes, next(fitting, []))

    def improper(self, center: Atom, outer: Sequence[tuple[int, Atom]]) -> tuple[tuple[int, int, int], list[Figures]]:
        """The outer atoms in their order, the last behind the center, and the rows; none where there is no improper."""
        match: tuple[tuple[int, int, int], list[Figures]] = ((0, 0, 0), [])
        for pattern, rows in self._impropers:
            if pattern[0] != center.class_ or (match[1] and "" in pattern):
                continue
            for order in permutations(outer):
                if all(p in ("", atom.class_) for p, (_, atom) in zip(pattern[1:], order, strict=True)):
                    (a, first), (b, second), (c, _) = order
                    match = ((b, a, c) if _swapped(a, first, b, second) else (a, b, c)), rows
                    break
        return match


class Graph:
    """Atoms and their bonds, with all terms among them."""

    def __init__(self, atoms: Sequence[Atom], bonds: Sequence[tuple[int, int]]) -> None:
        self.atoms = atoms
        self.bonds = bonds
        self.neighbours: list[list[int]] = [[] for _ in atoms]
        for i, j in bonds:
            self.neighbours[i].append(j)
            self.neighbours[j].append(i)
        for each in self.neighbours:
            each.sort()

    def terms(self, figures: TermFigures) -> dict[str, list[Term]]:
        """The rows of each section; those with K = 0 are left out."""
        classes = [atom.class_ for atom in self.atoms]
        found: dict[str, list[Term]] = {
            "BOND": [(bond, [figures.bond(*(classes[i] for i in bond))]) for bond in self.bonds],
            "THET": [(angle, [figures.angle(*(classes[i] for i in angle))]) for angle in self.angles()],
            "PHI": [(torsion, figures.proper(*(classes[i] for i in torsion))) for torsion in self.torsions()],
            "IPHI": [],
        }
        for center, bonded in enumerate(self.neighbours):
            for outer in combinations(bonded, 3):
                (a, b, d), rows = figures.improper(self.atoms[center], [(i, self.atoms[i]) for i in outer])
                found["IPHI"].append(((a, b, center, d), rows))
        return {
            section: [(atoms, there) for atoms, rows in terms if (there := [row for row in rows if row[0] != 0])]
            for section, terms in found.items()
        }

    def angles(self) -> Iterator[tuple[int, int, int]]:
        for j, bonded in enumerate(self.neighbours):
            for i, k in combinations(bonded, 2):
                yield i, j, k

    def torsions(self) -> Iterator[tuple[int, int, int, int]]:
        for j, k in self.bonds:
            for i in self.neighbours[j]:
                for m in self.neighbours[k]:
                    if i != k and m not in (i, j):
                        yield i, j, k, m


def _classes(element: ET.Element, n: int) -> tuple[str, ...]:
    return tuple(short_class(element.get(f"class{i}", element.get(f"type{i}", ""))) for i in range(1, n + 1))


def _harmonic(element: ET.Element, rest: str, unit: float) -> Figures:
    k = float(element.get("k", "0")) / 2 * KCAL_PER_KJ / unit**2  # bonds of residues have none
    return k, float(element.get(rest, "0")) * unit


def _periodic(element: ET.Element) -> list[Figures]:
    rows: list[Figures] = []
    for i in range(1, 7):
        if element.get(f"k{i}") is not None:
            phase = float(element.get(f"phase{i}", ""))
            if not (isclose(phase, pi, rel_tol=1e-9) or phase == 0):
                raise ValueError(f"a phase of {phase} rad is neither 0 nor pi")
            sign = -1.0 if phase else 1.0
            k, periodicity = (float(element.get(f"{name}{i}", "")) for name in ("k", "periodicity"))
            rows.append((k * KCAL_PER_KJ, sign, periodicity))
    return rows


def _both_ways(definitions: Sequence[tuple[tuple[str, ...], T]]) -> dict[tuple[str, ...], T]:
    """Definitions by their classes in both directions; the first of several holds."""
    found: dict[tuple[str, ...], T] = {}
    for classes, figures in definitions:
        found.setdefault(classes, figures)
        found.setdefault(classes[::-1], figures)
    return found


def _fits(pattern: Sequence[str], classes: Sequence[str]) -> bool:
    return all(p in ("", c) for p, c in zip(pattern, classes, strict=True))


def _swapped(i: int, first: Atom, j: int, second: Atom) -> bool:
    """Whether OpenMM puts the second of two outer atoms first: by index where both are of one element, else the carbon
    or the heavier."""
    if first.element == second.element:
        return i > j
    return first.element != "C" and (second.element == "C" or _MASSES[first.element] < _MASSES[second.element])
