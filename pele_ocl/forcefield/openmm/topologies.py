"""A Structure as an OpenMM Topology, with bonds by distance, as no file of structures has them all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import gemmi
import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints, Structure
from ...common.extras import extra
from ..matching import disulphides

if TYPE_CHECKING:
    from openmm.app import Topology

_LONGER = 1.3  # bonds of strained structures, in sums of covalent radii; pairs with an atom between them start at 1.4
_POLYMER_BOND_A = 2.0
_LINKS = (("C", "N"), ("O3'", "P"))


def topology_of(structure: Structure) -> Topology:
    """Chains, residues, atoms and bonds of a structure for OpenMM."""
    app = extra("openmm.app", "a force field of OpenMM")
    labels, topology = structure.labels, app.Topology()
    symbols = [symbol if symbol not in ("X", "") else None for symbol in labels.elements.tolist()]
    elements = {symbol: app.element.get_by_symbol(symbol) for symbol in set(symbols) if symbol}
    names, index, atoms, chain = labels.names.tolist(), labels.residue_index.tolist(), [], None
    made, last, segment = None, -1, -1
    ordinal = -1
    for name, symbol, residue in zip(names, symbols, index, strict=True):
        if residue != last:
            ordinal += 1
            about = labels.residues[ordinal]
            if structure.segments[ordinal] != segment:
                segment, chain = structure.segments[ordinal], topology.addChain(about.chain)
            made, last = topology.addResidue(about.name, chain, str(about.number), about.insertion_code), residue
        atoms.append(topology.addAtom(name, elements.get(symbol), made))
    for i, j in bonds_of(structure).tolist():
        topology.addBond(atoms[i], atoms[j])
    return topology


def bonds_of(structure: Structure) -> Ints:
    """(m, 2) bonds, i < j and sorted: within residues by distance, between them of chains and disulphides."""
    labels = structure.labels
    starts = [*labels.residue_starts.tolist(), len(labels)]
    radii = np.array([_radius(symbol) for symbol in labels.elements.tolist()])
    light = np.isin(labels.elements, ("H", "D"))
    found = [
        first + _within(structure.positions[first:end], radii[first:end], light[first:end])
        for first, end in pairwise(starts)
    ]
    links = np.array(list(_links(structure, starts)), np.int64).reshape(-1, 2)
    pairs = np.sort(np.concatenate([*found, links, disulphides(structure)]), axis=1)
    return np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2)


def _radius(symbol: str) -> float:
    return float(gemmi.Element("H" if symbol == "D" else symbol).covalent_r)


def _within(positions: Floats, radii: Floats, light: NDArray[np.bool_]) -> NDArray[np.intp]:
    """(m, 2) bonds of one residue; a hydrogen is bonded to the nearest other atom alone."""
    if len(positions) < 2:
        return np.empty((0, 2), np.intp)
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    near = distances < _LONGER * (radii[:, None] + radii)
    near[light] = near[:, light] = False
    bonds = np.argwhere(np.triu(near, 1))
    heavy, hydrogens = np.flatnonzero(~light), np.flatnonzero(light)
    if not len(heavy) or not len(hydrogens):
        return bonds
    to_heavy = distances[np.ix_(hydrogens, heavy)] / radii[heavy]
    nearest = heavy[to_heavy.argmin(axis=1)]
    close = distances[hydrogens, nearest] < _LONGER * (radii[hydrogens] + radii[nearest])
    return np.concatenate([bonds, np.stack([hydrogens, nearest], axis=1)[close]])


def _links(structure: Structure, starts: list[int]) -> Iterator[tuple[int, int]]:
    """Bonds of neighbours in a chain; the last residue of a ring is bonded to the first."""
    names, segments = structure.labels.names, structure.segments
    of = [
        {str(name): starts[r] + k for k, name in enumerate(names[starts[r] : starts[r + 1]])}
        for r in range(len(segments))
    ]
    first: dict[int, int] = {}
    for r, segment in enumerate(segments.tolist()):
        first.setdefault(segment, r)
        after = r + 1 if r + 1 < len(segments) and segments[r + 1] == segment else first[segment]
        for tail, head in _LINKS:
            i, j = of[r].get(tail), of[after].get(head)
            if i is not None and j is not None and after != r:
                if np.linalg.norm(structure.positions[i] - structure.positions[j]) < _POLYMER_BOND_A:
                    yield i, j
