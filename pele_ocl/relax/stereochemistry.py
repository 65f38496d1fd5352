"""Distances within residues as the literature has them: data/stereochemistry.csv, by Engh and Huber."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from ..atoms.chemistry import AMINO_ACIDS, FAMILIES
from ..common.installation import shipped

DEVIATIONS = 12.0  # standard deviations that a bond, or the distance across an angle, may be away
OVERLAP_A = 1.5  # by which the van der Waals spheres of other pairs may overlap
VDW_RADII: Mapping[str, float] = {"C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8}  # Bondi 1964, A

_STANDARD = {name: family[0] for family in FAMILIES for name in family if family[0] in AMINO_ACIDS}


@dataclass(frozen=True)
class Bounds:
    """Distances (A) that two atoms of a residue may have; kind : "bond", "angle" (its outer atoms) or "contact"."""

    kind: str
    lowest: float
    highest: float


def standard_residue(name: str) -> str:
    """Name the amino acid that a residue is, whatever its protonation: HIS for HID; "" for anything else."""
    name = name.upper()
    return name if name in AMINO_ACIDS else _STANDARD.get(name, "")


@cache
def residue_bounds(residue: str) -> Mapping[tuple[str, str], Bounds]:
    """Bounds of each pair of heavy atoms of an amino acid, by their names, each pair once.

    OXT has none. Bonds and the distances across angles may be 12 standard deviations away from their means; all other
    pairs are to have van der Waals spheres that overlap by at most 1.5 A.
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
    """Mean and standard deviation of the distance across an angle between two bonds, by the law of cosines."""
    (a, a_deviation), (b, b_deviation) = first, second
    angle = np.radians(degrees)
    length = np.sqrt(a * a + b * b - 2 * a * b * np.cos(angle))
    slopes = np.array([a * b * np.sin(angle), a - b * np.cos(angle), b - a * np.cos(angle)]) / length
    return float(length), float(np.linalg.norm(slopes * [np.radians(deviation), a_deviation, b_deviation]))


Table = dict[str, dict[tuple[str, ...], tuple[float, float]]]  # residue -> atoms -> mean and standard deviation


@cache
def _tables() -> tuple[Table, Table]:
    """Bonds (A) and angles (degrees) of all residues."""
    tables: dict[str, Table] = {"bond": {}, "angle": {}}
    with open(shipped("data") / "stereochemistry.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for residue in row["residues"].split():
                of_residue = tables[row["kind"]].setdefault(residue, {})
                of_residue[tuple(row["atoms"].split("-"))] = float(row["mean"]), float(row["deviation"])
    return tables["bond"], tables["angle"]
