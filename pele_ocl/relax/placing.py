"""Hydrogens, and terminal oxygens, placed about the atoms that a model has by the shapes that bonds have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..pairs.pairlist import pairs_of
from ..pairs.search import codes_within

Indices = NDArray[np.intp]
_LENGTHS = {"C": 1.09, "N": 1.01, "O": 0.96, "S": 1.34}  # of bonds to hydrogen, A, by the other atom
_OXYGEN_A = 1.25  # of C-OXT
_REACH_A = 6.0  # within which charges decide
_TETRAHEDRAL = np.arccos(-1 / 3)
_NO_LENGTH = 1e-6  # below which a vector has no direction


class _Added(NamedTuple):
    """An atom that models lack, with the fields of Placing that are its own. near : neighbours that are there"""

    atom: int
    parent: int
    near: list[int]
    side: tuple[int, int]
    local: Floats


@dataclass(frozen=True, eq=False)
class Placing:
    """Positions of all n atoms from the positions that models bring; k atoms are added.

    An added atom is bonded to one other, its parent, which carries three axes. The first leads away from all of the
    parent's neighbours. The second is normal to the bond to the first neighbour and to a side, a direction between two
    atoms. The third is normal to both. Coordinates along them give the atom's possible places.

    own : (n,) index of each atom among the atoms that models bring, -1 for the added ones
    added, parents : (k,) indices of the added atoms and of their parents
    neighbours : (k, 3) of the parents, the last one again where there are fewer
    weights : (k, 3) 1 for a neighbour, 0 where it is there again
    sides : (k, 2) the two atoms of the side
    local : (k, 3, 3) A, coordinates of three places to choose from, which are the same where nothing turns
    charges : (n,) e, by which a place is chosen
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
        """Prepare for atoms with bonds and elements; some stand nowhere yet."""
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
        """All atoms (n, 3) A, of the positions that a model brings."""
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
        """Choose places (t, 3) of atoms, of three each (t, 3, 3), to which the charges around attract them most."""
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
    """Vectors (..., 3) of length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def _along(*choices: Floats) -> Floats:
    """(k, 3) unit vectors along the first of several vectors (k, 3) that has a length; the last ones must have it."""
    found = choices[-1]
    for choice in reversed(choices):
        found = np.where(np.linalg.norm(choice, axis=1, keepdims=True) > _NO_LENGTH, unit(choice), found)
    return found


def _across(vectors: Floats) -> Floats:
    """(k, 3) vectors at right angles to others (k, 3); the third axis for a length of 0."""
    crossed = np.cross(vectors, np.eye(3)[np.abs(vectors).argmin(axis=1)])
    crossed[np.linalg.norm(crossed, axis=1) < _NO_LENGTH] = [0.0, 0.0, 1.0]
    return crossed


def _off_three(away: Floats) -> Floats:
    """(k, 3) normals of the planes through the ends of three vectors (k, 3, 3), to the side where their origin is.

    If noise has nearly put the origin into the plane, the sum of the three would lie in it, too. If it is in it, either
    side will do.
    """
    one, two, three = away.swapaxes(0, 1)
    normal = np.cross(one, two) + np.cross(two, three) + np.cross(three, one)
    side = np.where(np.einsum("ij,ij->i", one, np.cross(two, three)) < 0, -1.0, 1.0)
    return np.asarray(-side[:, None] * normal)


def _directions(n_neighbours: int, n_added: int, is_flat: bool) -> Floats:
    """(n_added, 3, 3) unit vectors as `local` has them; is_flat : whether the only neighbour has a plane to lie in."""
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
