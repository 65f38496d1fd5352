"""Place hydrogens and terminal oxygens by bond geometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..pairs.pairlist import pairs_of
from ..pairs.search import codes_within

Indices = NDArray[np.intp]
_LENGTHS = {"C": 1.09, "N": 1.01, "O": 0.96, "S": 1.34}  # lengths of bonds to hydrogen, A, by heavy atom
_OXYGEN_A = 1.25  # A, length of C-OXT
_REACH_A = 6.0  # A, cutoff for the potential of surrounding charges
_TETRAHEDRAL = np.arccos(-1 / 3)
_NO_LENGTH = 1e-6  # vectors shorter than this are treated as zero


class _Added(NamedTuple):
    """An added atom, with its entries for Placing. near : existing neighbours of the parent"""

    atom: int
    parent: int
    near: list[int]
    side: tuple[int, int]
    local: Floats


@dataclass(frozen=True, eq=False)
class Placing:
    """Computes the positions of n atoms, of which k are added, from the positions in a model.

    An added atom is bonded to its parent, which defines three local axes. The first points away from all neighbours of
    the parent. The second is normal to the bond to the first neighbour and to the side, a direction between two atoms.
    The third is normal to both. The possible positions of the atom are given in these local coordinates.

    own : (n,) index of each atom in the model, -1 for added atoms
    added, parents : (k,) indices of the added atoms and of their parents
    neighbours : (k, 3) neighbours of the parents; the last one is repeated if there are fewer
    weights : (k, 3) 1 for neighbours, 0 for repeated ones
    sides : (k, 2) the two atoms of the side
    local : (k, 3, 3) local coordinates of three candidate positions, A; they are equal if the position is unique
    charges : (n,) charges that decide between candidates, e
    """

    own: Indices
    added: Indices
    parents: Indices
    neighbours: Indices
    weights: Floats
    sides: Indices
    local: Floats
    charges: Floats

    @classmethod
    def of(cls, atoms: Atoms, own: Indices) -> Placing:
        """Prepare for atoms with bonds and elements. own : as in Placing"""
        assert atoms.labels is not None
        bonded: list[list[int]] = [[] for _ in own]
        for i, j in atoms.bonds.tolist():
            bonded[i].append(j)
            bonded[j].append(i)
        there, elements = own >= 0, atoms.labels.elements.tolist()
        parents = sorted({j for i in np.flatnonzero(~there).tolist() for j in bonded[i]})
        rows = list[_Added]()
        for parent in parents:
            near = [j for j in sorted(bonded[parent]) if there[j]]
            more = [j for j in sorted(bonded[near[0]]) if there[j] and j != parent]
            side = (parent, near[1]) if len(near) > 1 else (near[0], more[0])
            others = [j for j in sorted(bonded[parent]) if not there[j]]
            length = _LENGTHS[elements[parent]] if elements[others[0]] == "H" else _OXYGEN_A
            shapes = length * _directions(len(near), len(others), is_flat=len(bonded[near[0]]) == 3)
            rows += [_Added(i, parent, near, side, shape) for i, shape in zip(others, shapes, strict=True)]
        return cls(
            own=own,
            added=np.array([row.atom for row in rows], np.intp),
            parents=np.array([row.parent for row in rows], np.intp),
            neighbours=np.array([(row.near + row.near[-1:] * 2)[:3] for row in rows], np.intp).reshape(-1, 3),
            weights=np.array([[k < len(row.near) for k in range(3)] for row in rows], np.float64).reshape(-1, 3),
            sides=np.array([row.side for row in rows], np.intp).reshape(-1, 2),
            local=np.array([row.local for row in rows], np.float64).reshape(-1, 3, 3),
            charges=atoms.charges,
        )

    def placed(self, positions: Floats) -> Floats:
        """Return the positions of all atoms, (n, 3) A, from the positions in a model."""
        found = positions[self.own]
        parents = found[self.parents]
        away = unit(found[self.neighbours] - parents[:, None])
        first, last = away[:, 0], away[:, -1]
        off_fewer = -np.einsum("kij,ki->kj", away, self.weights)
        off_all = np.where(self.weights[:, 2:] > 0, _off_three(away), off_fewer)
        axis = _along(off_all, np.cross(first, last), _across(first))
        sides = unit(found[self.sides[:, 1]] - found[self.sides[:, 0]])
        normal = _along(np.cross(first, sides), np.cross(first, axis), _across(axis))
        axes = np.stack([axis, normal, np.cross(axis, normal)], axis=1)
        places = parents[:, None] + np.einsum("kij,kai->kaj", axes, self.local)
        found[self.added] = places[:, 0]
        turning = np.flatnonzero((self.local[:, 0] != self.local[:, 1]).any(axis=1))
        found[self.added[turning]] = self._attracted(found, self.added[turning], places[turning])
        return np.asarray(found)

    def _attracted(self, positions: Floats, atoms: Indices, places: Floats) -> Floats:
        """Choose for each atom the candidate position with the lowest potential of the surrounding charges.

        places : (t, 3, 3) candidates, A. Returns the chosen positions, (t, 3) A.
        """
        place_of = np.full(len(positions), -1, np.intp)
        place_of[atoms] = np.arange(len(atoms))
        one, other = pairs_of(codes_within(positions, _REACH_A))
        centres, around = np.concatenate([one, other]), np.concatenate([other, one])
        is_wanted = place_of[centres] >= 0
        centres, around = place_of[centres[is_wanted]], around[is_wanted]
        distances = np.linalg.norm(places[centres] - positions[around, None], axis=2)
        potentials = np.zeros(places.shape[:2])
        np.add.at(potentials, centres, self.charges[around, None] / np.maximum(distances, 1.0))
        return np.asarray(places[np.arange(len(atoms)), potentials.argmin(axis=1)])


def unit(vectors: Floats) -> Floats:
    """Normalize vectors (..., 3)."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def _along(*choices: Floats) -> Floats:
    """Return unit vectors (k, 3) along the first of several vectors that is not zero; the last must not be zero."""
    found = choices[-1]
    for choice in reversed(choices):
        found = np.where(np.linalg.norm(choice, axis=1, keepdims=True) > _NO_LENGTH, unit(choice), found)
    return found


def _across(vectors: Floats) -> Floats:
    """Return vectors (k, 3) perpendicular to the given ones; the z axis for zero vectors."""
    crossed = np.cross(vectors, np.eye(3)[np.abs(vectors).argmin(axis=1)])
    crossed[np.linalg.norm(crossed, axis=1) < _NO_LENGTH] = [0.0, 0.0, 1.0]
    return crossed


def _off_three(away: Floats) -> Floats:
    """Return normals (k, 3) of the planes through the ends of three vectors (k, 3, 3), pointing towards their origin.

    Unlike the sum of the vectors, the normal is well defined if the origin is nearly in the plane. If it is exactly in
    the plane, either direction is correct.
    """
    one, two, three = away.swapaxes(0, 1)
    normal = np.cross(one, two) + np.cross(two, three) + np.cross(three, one)
    side = np.where(np.einsum("ij,ij->i", one, np.cross(two, three)) < 0, -1.0, 1.0)
    return np.asarray(-side[:, None] * normal)


def _directions(n_neighbours: int, n_added: int, is_flat: bool) -> Floats:
    """Return unit vectors in local coordinates, (n_added, 3, 3). is_flat : whether the geometry is planar"""
    if n_neighbours > 1:
        half = _TETRAHEDRAL / 2 if n_added == 2 else 0.0
        return np.array([[[np.cos(a), np.sin(a), 0.0]] * 3 for a in (half, -half)[:n_added]])
    bend = np.radians(60) if is_flat and n_added < 3 else np.pi - _TETRAHEDRAL
    turns = {
        1: [[180.0, 0.0, 180.0] if is_flat else [180.0, 60.0, 300.0]],
        2: [[0.0] * 3, [180.0] * 3],
        3: [[60.0] * 3, [180.0] * 3, [300.0] * 3],
    }[n_added]
    turned = np.radians(turns)
    along = np.full(turned.shape, np.cos(bend))
    return np.stack([along, np.sin(bend) * np.sin(turned), np.sin(bend) * np.cos(turned)], axis=2)
