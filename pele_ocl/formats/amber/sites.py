"""Extra points of AMBER topologies: massless sites, whose positions are defined only in water models."""

from __future__ import annotations

from math import asin, cos, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from ...atoms import Bonds, Labels, VirtualSites
from ...atoms.sites import SiteRule
from .sections import SectionCounts, Sections

_LONE_PAIR = 0.5 * 109.47 * pi / 180  # angle between the plane of five-site water and its lone pairs, as in AMBER


def is_extra_point(sections: Sections, counts: SectionCounts) -> NDArray[np.bool_]:
    """Return a mask (n,) of the atoms without mass."""
    if "MASS" not in sections:
        return np.zeros(counts.atoms, np.bool_)
    found: NDArray[np.bool_] = sections.numbers("MASS", counts.atoms) == 0
    return found


def read_sites(is_site: NDArray[np.bool_], labels: Labels, bonds: Bonds) -> VirtualSites | None:
    """Create virtual sites for the extra points. Only those of water have a definition."""
    if not is_site.any():
        return None
    lengths = {
        tuple(sorted(pair)): float(r0) for pair, (_, r0) in zip(bonds.atoms.tolist(), bonds.parameters, strict=True)
    }
    ends = [*labels.residue_starts.tolist(), len(labels)]
    rules: list[SiteRule] = []
    for r in np.unique(labels.residue_index[is_site]).tolist():
        members = list(range(ends[r], ends[r + 1]))
        points = [k for k in members if is_site[k]]
        rules += _of_water(members, points, labels, lengths) or [SiteRule(k) for k in points]
    return VirtualSites.of(rules)


def _of_water(
    members: list[int], points: list[int], labels: Labels, lengths: dict[tuple[int, ...], float]
) -> list[SiteRule]:
    """Define the extra points of four-site and five-site water by bond lengths; empty for other residues."""
    elements = labels.elements
    oxygens, hydrogens = ([k for k in members if elements[k] == symbol] for symbol in "OH")
    if len(oxygens) != 1 or len(hydrogens) != 2 or len(members) != 3 + len(points) or len(points) > 2:
        return []
    (oxygen,) = oxygens
    parents = [oxygen, *hydrogens]
    to_hydrogen, apart = (lengths.get(tuple(sorted(pair))) for pair in (parents[:2], hydrogens))
    to_point = lengths.get(tuple(sorted((oxygen, points[0]))))
    if to_hydrogen is None or apart is None or to_point is None:
        return []
    to_middle = sqrt(to_hydrogen**2 - (apart / 2) ** 2)
    if len(points) == 1:
        weight = to_point / to_middle
        return [SiteRule(points[0], parents, [1 - weight, weight / 2, weight / 2])]
    weight = -cos(_LONE_PAIR) * to_point / to_middle
    area = to_hydrogen**2 * sin(2 * asin(apart / 2 / to_hydrogen))
    cross = sin(_LONE_PAIR) * to_point / area
    origin = [1 - weight, weight / 2, weight / 2]
    return [SiteRule(points[k], parents, origin, [-1, 1, 0], [-1, 0, 1], (cross, -cross)[k]) for k in range(2)]
