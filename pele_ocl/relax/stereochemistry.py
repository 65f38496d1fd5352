"""Ideal bond lengths and angles of amino acids by Engh and Huber, from data/stereochemistry.csv."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from ..atoms.chemistry import AMINO_ACIDS, FAMILIES
from ..common.installation import shipped

DEVIATIONS = 12.0  # allowed deviation of bond lengths and 1-3 distances, in standard deviations
OVERLAP_A = 1.5  # A, allowed overlap of the van der Waals spheres of other pairs
VDW_RADII: Mapping[str, float] = {"C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8}  # Bondi 1964, A

_STANDARD = {name: family[0] for family in FAMILIES for name in family if family[0] in AMINO_ACIDS}


@dataclass(frozen=True)
class Bounds:
    """Allowed distances between two atoms of a residue, A. kind : "bond", "angle" (1-3 distance) or "contact" """

    kind: str
    lowest: float
    highest: float


def standard_residue(name: str) -> str:
    """Return the standard name of an amino acid in any protonation state, e.g. HIS for HID; "" for other residues."""
    name = name.upper()
    return name if name in AMINO_ACIDS else _STANDARD.get(name, "")


@cache
def residue_bounds(residue: str) -> Mapping[tuple[str, str], Bounds]:
    """Return the bounds of each pair of heavy atoms of an amino acid, by sorted pair of names, without OXT.

    Bond lengths and 1-3 distances may deviate by 12 standard deviations from their means. The van der Waals spheres of
    all other pairs may overlap by at most 1.5 A.
    """
    bonds, angles = _tables()
    lengths = {frozenset(names): value for names, value in bonds[residue].items()}
    names = sorted({name for pair in lengths for name in pair})
    found = {
        pair: Bounds("contact", VDW_RADII[pair[0][0]] + VDW_RADII[pair[1][0]] - OVERLAP_A, np.inf)
        for pair in combinations(names, 2)
    }
    for pair, (mean, deviation) in bonds[residue].items():
        found[_sorted(*pair)] = _around("bond", mean, deviation)
    for (first, middle, last), (mean, deviation) in angles[residue].items():
        across = _across(lengths[frozenset((first, middle))], lengths[frozenset((middle, last))], mean, deviation)
        found[_sorted(first, last)] = _around("angle", *across)
    return found


def _sorted(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _around(kind: str, mean: float, deviation: float) -> Bounds:
    return Bounds(kind, mean - DEVIATIONS * deviation, mean + DEVIATIONS * deviation)


def _across(
    first: tuple[float, float], second: tuple[float, float], degrees: float, deviation: float
) -> tuple[float, float]:  # fmt: skip
    """Return the mean and standard deviation of a 1-3 distance from two bonds and their angle (law of cosines)."""
    (a, a_deviation), (b, b_deviation) = first, second
    angle = np.radians(degrees)
    length = np.sqrt(a * a + b * b - 2 * a * b * np.cos(angle))
    slopes = np.array([a * b * np.sin(angle), a - b * np.cos(angle), b - a * np.cos(angle)]) / length
    return float(length), float(np.linalg.norm(slopes * [np.radians(deviation), a_deviation, b_deviation]))


Table = dict[str, dict[tuple[str, ...], tuple[float, float]]]  # residue -> atoms -> mean and standard deviation


@cache
def _tables() -> tuple[Table, Table]:
    """Read the bond lengths (A) and angles (degrees) of all amino acids."""
    tables: dict[str, Table] = {"bond": {}, "angle": {}}
    with open(shipped("data") / "stereochemistry.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for residue in row["residues"].split():
                of_residue = tables[row["kind"]].setdefault(residue, {})
                of_residue[tuple(row["atoms"].split("-"))] = float(row["mean"]), float(row["deviation"])
    return tables["bond"], tables["angle"]
