"""Rotatable side chains: which atoms rotate about which bonds, and their positions after rotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints
from ..atoms.names import residue_names
from ..atoms.torsions import Graph
from ..common.errors import InputError

# Side-chain atoms along the chi angles, by residue; each chi is defined by four consecutive atoms of N, CA and these.
CHI_ATOMS = {
    "ARG": "CB CG CD NE CZ", "ASN": "CB CG OD1", "ASP": "CB CG OD1", "CYS": "CB SG", "GLN": "CB CG CD OE1",
    "GLU": "CB CG CD OE1", "HIS": "CB CG ND1", "ILE": "CB CG1 CD1", "LEU": "CB CG CD1", "LYS": "CB CG CD CE NZ",
    "MET": "CB CG SD CE", "PHE": "CB CG CD1", "SER": "CB OG", "THR": "CB OG1", "TRP": "CB CG CD1",
    "TYR": "CB CG CD1", "VAL": "CB CG1",
}  # fmt: skip
_OTHER_NAMES = {"CD1": "CD"}  # name in isoleucine in CHARMM and GROMACS


@dataclass(frozen=True, eq=False)
class RotamerChain:
    """Side chain of an amino acid with its rotatable bonds.

    residue : index of the residue, as in Labels.residue_index; name : three-letter name of the amino acid
    moved : (m,) indices of all atoms that rotations move
    torsions : (b, 4) atoms of chi1, chi2, ..., followed by the torsion of polar hydrogens if there is one
    turned : (b, m) whether each bond moves each atom
    n_chi : number of chi angles
    polar_steps : number of scanned angles of the polar hydrogens, in steps of 10 degrees: 36, 12 for three equivalent
        hydrogens, 1 without any
    """

    residue: int
    name: str
    moved: Ints
    torsions: Ints
    turned: NDArray[np.bool_]
    n_chi: int
    polar_steps: int

    @property
    def polar(self) -> NDArray[np.bool_]:
        """Mask (m,) of the scanned polar hydrogens among `moved`."""
        if self.polar_steps == 1:
            return np.zeros(len(self.moved), bool)
        scanned: NDArray[np.bool_] = self.turned[self.n_chi]
        return scanned

    def angles(self, positions: Floats) -> Floats:
        """Measure the chi angles, (n_chi,) rad. positions : (n, 3) A of the molecule"""
        return torsions_at(positions, self.torsions[: self.n_chi])

    def placed(self, positions: Floats, by: ArrayLike) -> Floats:
        """Return the positions of the moved atoms after rotations, (m, 3) A.

        by : (b,) rotation about each bond, rad; positions : (n, 3) A of the molecule

        Rotations are applied from the last bond to the first, so that none moves the axis of a later one.
        """
        there = positions[self.moved].copy()
        for torsion, turned, angle in reversed(list(zip(self.torsions, self.turned, np.asarray(by), strict=True))):
            start, end = positions[torsion[1]], positions[torsion[2]]
            there[turned] = turned_about(there[turned], start, end - start, float(angle))
        return there


def side_chains_of(atoms: Atoms, residues: Sequence[int] | None = None) -> list[RotamerChain]:
    """Find the rotatable side chains of amino acids, by default of all residues, in order.

    GLY, ALA, PRO and side chains bonded to another residue, as in a disulphide, are not rotatable.

    Raises InputError for atoms without labels or bonds.
    """
    if atoms.labels is None or not len(atoms.bond_pairs):
        raise InputError("rotating side chains needs labels and bonds, which these atoms do not have")
    graph = Graph(atoms)
    starts = [*atoms.labels.residue_starts.tolist(), len(atoms)]
    chosen = range(len(starts) - 1) if residues is None else residues
    found = (_side_chain(atoms, k, range(starts[k], starts[k + 1]), graph) for k in chosen)
    return [chain for chain in found if chain is not None]


def _side_chain(atoms: Atoms, residue: int, members: range, graph: Graph) -> RotamerChain | None:
    """Return the side chain of a residue; None if it is not rotatable."""
    assert atoms.labels is not None
    first = members.start
    amino = [name for name in residue_names(str(atoms.labels.residue_names[first])) if name in CHI_ATOMS]
    if not amino:
        return None
    places = {str(atoms.labels.names[i]): i for i in members}
    names = ["N", "CA", *CHI_ATOMS[amino[0]].split()]
    chain = [places.get(name, places.get(_OTHER_NAMES.get(name, ""))) for name in names]
    path = [i for i in chain if i is not None]
    if len(path) < len(chain):
        return None
    torsions = [path[k : k + 4] for k in range(len(path) - 3)]
    polar = _polar_bond(atoms, members, graph)
    found = [graph.beyond(j, k, set(members)) for _, j, k, _ in [*torsions, *polar[:1]]]
    turned_atoms = [set(beyond) for beyond in found if beyond is not None]
    if len(turned_atoms) < len(found):
        return None
    moved = sorted(set().union(*turned_atoms))
    turned = np.array([[i in beyond for i in moved] for beyond in turned_atoms])
    steps = 1 if not polar else 12 if len(polar) == 3 else 36
    return RotamerChain(
        residue, amino[0], np.array(moved, np.int32), np.array([*torsions, *polar[:1]], np.int32), turned,
        len(torsions), steps,
    )  # fmt: skip


def _polar_bond(atoms: Atoms, members: range, graph: Graph) -> list[list[int]]:
    """Return the torsions of a residue's polar hydrogens, one per hydrogen, about their common bond; empty if none.

    Polar hydrogens are those of O or S with one hydrogen, of N with three, and of N with two next to an sp3 carbon.
    """
    assert atoms.labels is not None
    elements, names, neighbours = atoms.labels.elements, atoms.labels.names, graph.neighbours
    for i in members:
        if elements[i] not in ("O", "S", "N") or str(names[i]) == "N":
            continue
        hydrogens = [j for j in neighbours[i] if elements[j] == "H"]
        heavy = [j for j in neighbours[i] if elements[j] != "H"]
        if len(heavy) != 1 or not hydrogens:
            continue
        further = [j for j in neighbours[heavy[0]] if j != i]
        alike = len(hydrogens) == 3 or (len(hydrogens) == 2 and len(further) == 3)
        if further and (alike if elements[i] == "N" else len(hydrogens) == 1):
            anchor = min(further, key=lambda j: (elements[j] == "H", j))
            return [[anchor, heavy[0], i, j] for j in hydrogens]
    return []


def torsions_at(positions: Floats, torsions: Ints) -> Floats:
    """Measure torsion angles, (b,) rad between -pi and pi. torsions : (b, 4) atoms; positions : (n, 3) A"""
    return torsions_of(*(positions[torsions[:, c]] for c in range(4)))


def torsions_of(i: Floats, j: Floats, k: Floats, h: Floats) -> Floats:
    """Measure torsion angles, (b,) rad between -pi and pi, from the positions (b, 3) A of their four atoms."""
    f, g, last = i - j, j - k, h - k
    a, b = _cross(f, g), _cross(last, g)
    sine = -np.sqrt(np.einsum("ij,ij->i", g, g)) * np.einsum("ij,ij->i", f, b)
    angles: Floats = np.arctan2(sine, np.einsum("ij,ij->i", a, b))
    return angles


def _cross(u: Floats, v: Floats) -> Floats:
    """Return cross products of vectors (b, 3). For few vectors np.cross would dominate the time of `torsions_of`."""
    (a, b, c), (d, e, f) = u.T, v.T
    return np.stack([b * f - c * e, c * d - a * f, a * e - b * d], axis=1)


def turned_about(points: Floats, start: Floats, axis: Floats, angle: float) -> Floats:
    """Rotate points (m, 3) about an axis through `start`, so that torsions increase by `angle` (rad)."""
    u = axis / np.linalg.norm(axis)
    from_start = points - start
    along = np.outer(from_start @ u, u)
    turned: Floats = start + along + np.cos(angle) * (from_start - along) + np.sin(angle) * np.cross(u, from_start)
    return turned
