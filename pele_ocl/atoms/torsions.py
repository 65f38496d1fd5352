"""Rotatable bonds of side chains and ligands, derived from the bonds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..common.errors import InputError
from .atoms import Atoms
from .labels import Ints

# Minimum length of a single bond by elements, A; shorter bonds are double, aromatic or amide bonds.
SINGLE = {("C", "C"): 1.42, ("C", "N"): 1.36, ("N", "N"): 1.30, ("N", "O"): 1.30, ("C", "S"): 1.68}
MOST_BONDS = 5, 3  # maximum number of bonds rotated together; the second value applies to resolutions finer than FINE
FINE = 30.0  # degrees


@dataclass(frozen=True, eq=False)
class Torsion:
    """A rotatable bond.

    axis : its two atoms, the second one farther from the core; moved : (m,) atoms beyond the second one
    resolution : step of the rotation, degrees
    """

    axis: tuple[int, int]
    moved: Ints
    resolution: float = 30.0

    @property
    def n_values(self) -> int:
        """Number of distinct rotation angles."""
        return max(1, round(360 / self.resolution))


@dataclass(frozen=True, eq=False)
class SideChain:
    """Torsions of one branch, from the core outwards."""

    torsions: tuple[Torsion, ...]

    @property
    def most(self) -> int:
        """Maximum number of torsions that are rotated together, by PELE's rule."""
        return min(len(self.torsions), MOST_BONDS[any(torsion.resolution < FINE for torsion in self.torsions)])


@dataclass(frozen=True, eq=False)
class Flexible:
    """A ligand or residue with side chains around a rigid core.

    atoms : (m,) all atoms; side_chains : branches of the core
    """

    atoms: Ints
    side_chains: tuple[SideChain, ...]

    @cached_property
    def moved(self) -> Ints:
        """Atoms moved by any torsion, in order."""
        all_moved = [torsion.moved for chain in self.side_chains for torsion in chain.torsions]
        return np.unique(np.concatenate([*all_moved, np.zeros(0, np.int32)])).astype(np.int32)

    @cached_property
    def core(self) -> Ints:
        """Atoms not moved by any torsion, in order."""
        core: Ints = np.setdiff1d(self.atoms, self.moved)
        return core


class Graph:
    """Bonds of a molecule as lists of neighbours."""

    def __init__(self, atoms: Atoms) -> None:
        """Raise InputError for atoms without bonds or labels."""
        if atoms.labels is None or not len(atoms.bond_pairs):
            raise InputError("torsions need bonds and elements, which these atoms do not have")
        self.atoms, self.elements = atoms, atoms.labels.elements
        self.neighbours: list[list[int]] = [[] for _ in range(len(atoms))]
        for i, j in atoms.bond_pairs.tolist():
            self.neighbours[i].append(j)
            self.neighbours[j].append(i)

    def beyond(self, b: int, c: int, own: Set[int]) -> list[int] | None:
        """Return the atoms connected to c when its bond to b is cut, without c.

        Returns None if the bond is in a ring, or if some of them are not in `own`.
        """
        found, ahead = {c}, [c]
        while ahead:
            atom = ahead.pop()
            for other in self.neighbours[atom]:
                if other == b:
                    if atom != c:
                        return None
                elif other not in own:
                    return None
                elif other not in found:
                    found.add(other)
                    ahead.append(other)
        return sorted(found - {c})

    def is_rotatable(self, b: int, c: int) -> bool:
        """Return whether a bond is single and its rotation moves more than the hydrogens of a carbon or nitrogen."""
        for one, other in ((b, c), (c, b)):
            hanging = [k for k in self.neighbours[one] if k != other]
            heavy = [k for k in hanging if self.elements[k] != "H"]
            if not heavy and not (hanging and self.elements[one] in ("O", "S")):
                return False
        pair = min(str(self.elements[b]), str(self.elements[c])), max(str(self.elements[b]), str(self.elements[c]))
        length = np.linalg.norm(self.atoms.positions[b] - self.atoms.positions[c])
        return bool(length >= SINGLE.get(pair, 0.0))

    def rotatable(self, chosen: Ints) -> list[tuple[int, int]]:
        """Return the rotatable bonds among the chosen atoms whose rotation moves no other atoms."""
        own = set(chosen.tolist())
        bonds = ((b, c) for b in sorted(own) for c in self.neighbours[b] if b < c and c in own)
        return [
            (b, c)
            for b, c in bonds
            if self.is_rotatable(b, c) and (self.beyond(b, c, own) is not None or self.beyond(c, b, own) is not None)
        ]


def flexible_ligand(atoms: Atoms, ligand: Ints, resolution: float = 30.0) -> Flexible:
    """Find the core and the side chains of a ligand. The core is the rigid part with the most heavy atoms.

    resolution : step of the rotations, degrees
    """
    graph = Graph(atoms)
    bonds = graph.rotatable(ligand)
    core = max(_rigid_parts(graph, ligand, bonds), key=lambda part: (_heavy(graph, part), len(part), -min(part)))
    return Flexible(ligand, tuple(_side_chains(graph, bonds, core, ligand, resolution)))


def flexible_residues(atoms: Atoms, chosen: Ints, resolution: float = 10.0) -> list[Flexible]:
    """Find protein residues with rotatable side chains among the chosen atoms.

    Bonds in rings and disulphide bridges and bonds to methyl groups are not rotatable. resolution : step of the
    rotations, degrees
    """
    graph, found = Graph(atoms), list[Flexible]()
    labels = atoms.labels
    assert labels is not None
    index = labels.residue_index[chosen]
    for own in np.split(chosen, np.flatnonzero(np.diff(index)) + 1):
        names = {str(name): atom for name, atom in zip(labels.names[own], own.tolist(), strict=True)}
        if not {"N", "CA", "C", "CB"} <= names.keys():
            continue
        inside = {names["N"], names["CA"], names["C"]}
        bonds = [bond for bond in graph.rotatable(own) if not set(bond) <= inside]
        core = _part_of(graph, own, bonds, names["CA"])
        chains = tuple(_side_chains(graph, bonds, core | inside, own, resolution))
        if chains:
            found.append(Flexible(own, chains))
    return found


def _rigid_parts(graph: Graph, chosen: Ints, bonds: Sequence[tuple[int, int]]) -> list[set[int]]:
    """Split atoms into rigid parts at the rotatable bonds."""
    parts, left = list[set[int]](), set(chosen.tolist())
    while left:
        parts.append(_part_of(graph, chosen, bonds, min(left)))
        left -= parts[-1]
    return parts


def _part_of(graph: Graph, chosen: Ints, bonds: Sequence[tuple[int, int]], start: int) -> set[int]:
    """Return the chosen atoms in the same rigid part as the atom `start`."""
    cut, own = {*bonds, *((c, b) for b, c in bonds)}, set(chosen.tolist())
    found, ahead = {start}, [start]
    while ahead:
        atom = ahead.pop()
        for other in graph.neighbours[atom]:
            if other in own and other not in found and (atom, other) not in cut:
                found.add(other)
                ahead.append(other)
    return found


def _heavy(graph: Graph, part: set[int]) -> int:
    return sum(graph.elements[k] != "H" for k in part)


def _side_chains(
    graph: Graph, bonds: Sequence[tuple[int, int]], core: set[int], chosen: Ints, resolution: float
) -> Iterator[SideChain]:
    """Group torsions into branches, from the core outwards. Only torsions that move chosen atoms alone are included."""
    own = set(chosen.tolist())
    torsions: list[Torsion] = []
    for bond in bonds:
        for axis in (bond, bond[::-1]):
            moved = graph.beyond(*axis, own)
            if moved and not core & set(moved):
                torsions.append(Torsion(axis, np.array(moved, np.int32), resolution))
                break
    torsions.sort(key=lambda torsion: (-len(torsion.moved), torsion.axis))
    while torsions:
        first = torsions[0]
        inside = {first.axis[1], *first.moved.tolist()}
        branch = [torsion for torsion in torsions if torsion.axis[1] in inside]
        torsions = [torsion for torsion in torsions if torsion not in branch]
        yield SideChain(tuple(branch))
