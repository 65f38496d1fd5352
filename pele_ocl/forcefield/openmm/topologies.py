"""Conversion of a Structure to an OpenMM Topology, with bonds by name in standard residues, others by distance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING

import gemmi
import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints, Structure
from ...atoms.chemistry import AMINO_ACIDS
from ...atoms.names import canonical, residue_names
from ...common.extras import extra
from ..matching import disulphides

if TYPE_CHECKING:
    from openmm.app import Topology

_LONGER = 1.3  # maximum bond length in units of the sum of covalent radii; 1-3 pairs are above 1.4
_POLYMER_BOND_A = 2.0
_LINKS = (("C", "N"), ("O3'", "P"))
# Residues whose bonds OpenMM defines by atom names. Distances are sufficient for caps and water.
_STANDARD = AMINO_ACIDS | {"A", "C", "G", "U", "DA", "DC", "DG", "DT"}


def topology_of(structure: Structure) -> Topology:
    """Create an OpenMM Topology from a structure."""
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
    """Find the bonds (m, 2), i < j and sorted: within residues, between residues of a chain, and disulphides.

    Heavy atoms of standard residues are bonded by name, even if a bond is stretched. Heavy atoms of other residues and
    all hydrogens are bonded by distance.
    """
    labels = structure.labels
    starts = [*labels.residue_starts.tolist(), len(labels)]
    by_name = _standard_bonds(structure, starts)
    radii = np.array([_radius(symbol) for symbol in labels.elements.tolist()])
    light = np.isin(labels.elements, ("H", "D"))
    found = [
        first + _within(structure.positions[first:end], radii[first:end], light[first:end], by_name.get(r))
        for r, (first, end) in enumerate(pairwise(starts))
    ]
    links = np.array(list(_links(structure, starts)), np.int64).reshape(-1, 2)
    pairs = np.sort(np.concatenate([*found, links, disulphides(structure)]), axis=1)
    return np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2)


def open_ends(structure: Structure) -> list[int]:
    """Return the indices of residues with a linking atom that is not bonded to another residue."""
    labels = structure.labels
    linked = {atom for pair in _links(structure, [*labels.residue_starts.tolist(), len(labels)]) for atom in pair}
    ends = np.flatnonzero(np.isin(labels.names, [name for link in _LINKS for name in link]))
    return sorted({int(labels.residue_index[i]) for i in ends.tolist() if i not in linked})


def gap_notes(structure: Structure) -> list[str]:
    """Return a note for each pair of consecutive residues of a chain that are not bonded."""
    return [
        f"{structure.where(i)} and {structure.labels.atom(j)} are {apart:.1f} A apart, so the chain has a gap "
        "between them and they are not bonded"
        for i, j, apart in gaps(structure)
    ]


def gaps(structure: Structure) -> list[tuple[int, int, float]]:
    """Find consecutive residues of a chain that are not bonded. Returns the linking atoms and their distance, A."""
    labels, segments = structure.labels, structure.segments
    starts = [*labels.residue_starts.tolist(), len(labels)]
    linked = {pair for pair in _links(structure, starts)}
    found = list[tuple[int, int, float]]()
    for r in np.flatnonzero(segments[1:] == segments[:-1]).tolist():
        for tail, head in _LINKS:
            i = [starts[r] + k for k in np.flatnonzero(labels.names[starts[r] : starts[r + 1]] == tail).tolist()]
            j = [
                starts[r + 1] + k for k in np.flatnonzero(labels.names[starts[r + 1] : starts[r + 2]] == head).tolist()
            ]
            if i and j and (i[0], j[0]) not in linked:
                found.append((i[0], j[0], float(np.linalg.norm(structure.positions[i[0]] - structure.positions[j[0]]))))
    return found


def _standard_bonds(structure: Structure, starts: list[int]) -> dict[int, NDArray[np.intp]]:
    """Return the bonds (m, 2) between heavy atoms of standard residues, by index of the residue."""
    app, labels = extra("openmm.app", "a force field of OpenMM"), structure.labels
    topology, carbon, found = app.Topology(), app.element.carbon, dict[int, NDArray[np.intp]]()
    light = np.isin(labels.elements, ("H", "D"))
    residues = labels.residues
    for r, (first, end) in enumerate(pairwise(starts)):
        name = next((name for name in residue_names(residues[r].name) if name in _STANDARD), "")
        made = topology.addResidue(name, topology.addChain(str(r)))  # no bonds between chains
        for k, atom in enumerate(canonical(labels.names[first:end].tolist())):
            if name and not light[first + k]:
                topology.addAtom(atom, carbon, made, str(k))
    topology.createStandardBonds()
    bonds: dict[int, list[tuple[int, int]]] = {}
    for a, b in topology.bonds():
        bonds.setdefault(a.residue.index, []).append((int(a.id), int(b.id)))
    for r, pairs in bonds.items():
        heavy = np.flatnonzero(~light[starts[r] : starts[r + 1]])
        if set(heavy.tolist()) == {k for pair in pairs for k in pair}:  # all atoms have standard names
            found[r] = np.sort(np.array(pairs, np.intp), axis=1)
    return found


def _radius(symbol: str) -> float:
    return float(gemmi.Element("H" if symbol == "D" else symbol).covalent_r)


def _within(
    positions: Floats, radii: Floats, light: NDArray[np.bool_], by_name: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Find the bonds (m, 2) in a residue; hydrogens bond only to the nearest atom. by_name : bonds of heavy atoms"""
    if len(positions) < 2:
        return np.empty((0, 2), np.intp)
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    near = distances < _LONGER * (radii[:, None] + radii)
    near[light] = near[:, light] = False
    bonds = np.argwhere(np.triu(near, 1)) if by_name is None else by_name
    heavy, hydrogens = np.flatnonzero(~light), np.flatnonzero(light)
    if not len(heavy) or not len(hydrogens):
        return bonds
    to_heavy = distances[np.ix_(hydrogens, heavy)] / radii[heavy]
    nearest = heavy[to_heavy.argmin(axis=1)]
    close = distances[hydrogens, nearest] < _LONGER * (radii[hydrogens] + radii[nearest])
    return np.concatenate([bonds, np.stack([hydrogens, nearest], axis=1)[close]])


def _links(structure: Structure, starts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the bonds between consecutive residues of a chain, and between the last and first residue of a ring.

    Residues that are adjacent in a chain may be in different segments, because residues such as Y1P end a segment if
    they are listed as HETATM.
    """
    names, segments, chains = structure.labels.names, structure.segments, structure.labels.chains[starts[:-1]]
    of = [
        {str(name): starts[r] + k for k, name in enumerate(names[starts[r] : starts[r + 1]])}
        for r in range(len(segments))
    ]
    first: dict[int, int] = {}
    for r, segment in enumerate(segments.tolist()):
        first.setdefault(segment, r)
        is_last = r + 1 == len(segments)
        next_ones = [r + 1] if not is_last and chains[r + 1] == chains[r] else []
        if is_last or segments[r + 1] != segment:
            next_ones.append(first[segment])
        for after, (tail, head) in product(next_ones, _LINKS):
            i, j = of[r].get(tail), of[after].get(head)
            if i is not None and j is not None and after != r:
                if np.linalg.norm(structure.positions[i] - structure.positions[j]) < _POLYMER_BOND_A:
                    yield i, j
