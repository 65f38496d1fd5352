"""Whole molecules, side by side: atoms moved by lattice vectors to where their bonds and neighbours are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Ints
from ..common.notes import Note
from .cells import Floats, reduced, usable_cells, widths_of
from .findings import impossible_bonds

Indices = NDArray[np.intp]
Reals = NDArray[np.floating]

CUT_NOTE = Note(
    "molecules were cut by the faces of the cell; they were made whole and placed next to the largest", code="imaged"
)
TOUCH = 3.0  # A: a molecule with an atom so near to another molecule stays where it is
_SMALL = 5  # atoms of water and ions, which are placed last and beside which nothing is placed
_MOST_LARGE = 64  # other molecules that are placed one by one; the smallest of more are placed as water is
_MOST = 512  # atoms of a molecule by which the nearest image is found
_MOST_PAIRS = 1 << 22  # of two molecules that are looked through at once
_CHUNK = 1 << 16  # atoms of frames that are handled at a time
_KEPT = 8  # pairs of touching atoms that are remembered for the next frames
_AROUND = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


class Imager:
    """Makes the molecules of frames whole and puts them into the images where they are nearest to each other.

    A molecule is all that bonds join. The largest stays in place. Then, again and again, the molecule nearest to the
    placed ones joins them, and water and ions at last. Molecules that touch already are not moved.
    """

    def __init__(
        self, n_atoms: int, bonds: Ints, chosen: Indices | None = None, anchors: Indices | None = None
    ) -> None:
        """chosen : (k,) indices of the atoms that may be moved, in any order; None for all
        anchors : indices of atoms whose largest molecule stays in place; None for all
        """
        self._i = np.arange(n_atoms) if chosen is None else np.unique(chosen)
        allowed = np.zeros(n_atoms, np.bool_)
        allowed[self._i] = True
        bonds = bonds[allowed[bonds].all(axis=1)]
        self._parents, molecules = _trees(self._i, bonds, n_atoms)
        self._linked = self._i[self._parents[self._i] != self._i]  # every atom that hangs on another
        may_anchor = allowed.copy()
        if anchors is not None and len(anchors):
            may_anchor[:] = False
            may_anchor[anchors] = True
        molecules.sort(key=lambda of: (-len(of), of[0]))
        first = max(range(len(molecules)), key=lambda k: (int(may_anchor[molecules[k]].sum()), -k))
        self._anchor = molecules.pop(first)
        self._large = [of for of in molecules if len(of) > _SMALL][:_MOST_LARGE]
        small = molecules[len(self._large) :]
        self._small = np.array([of[0] for of in small], np.intp)  # of each the atom that tells where it is
        self._of_small = np.concatenate([*small, np.empty(0, np.intp)]).astype(np.intp)
        self._each_small = np.repeat(np.arange(len(small)), [len(of) for of in small])
        self._touching: list[tuple[Indices, Indices]] = []  # of each large molecule, pairs of atoms as last seen

    def __call__(self, positions: Reals, cells: Floats) -> tuple[Reals, NDArray[np.bool_]]:
        """Image the positions (m, n, 3) A of frames, and tell (m,) True for each frame with a moved atom.

        cells : (m, 3, 3) A, NaN where a frame has none and stays as it is

        If no atom is moved, the frames are returned as given; otherwise all are a copy in float64.
        """
        m, n = positions.shape[:2]
        moved = np.zeros(m, np.bool_)
        known = np.isfinite(cells).all(axis=(1, 2))
        if not known.any():
            return positions, moved
        cells = reduced(cells[known][0]) @ cells
        found: Reals = positions
        step = max(1, _CHUNK // n)
        for first in range(0, m, step):
            part = first + self._suspect(positions[first : first + step], cells[first : first + step])
            if not len(part):
                continue
            numbers = self._numbers(np.array(positions[part], np.float64), cells[part])
            if numbers is None:
                continue
            if found is positions:
                found = np.array(positions, np.float64)
            found[part] += numbers @ cells[part]
            moved[part] = (numbers != 0).any(axis=(1, 2))
        return found, moved

    def _suspect(self, positions: Reals, cells: Floats) -> Indices:
        """Find the frames that may have to be imaged, among the frames with a cell and with finite positions."""
        widths = widths_of(cells).min(axis=1)
        cut = np.zeros(len(positions), np.bool_)
        cut[self._cut(positions, widths)] = True
        cut[self._apart(positions)] = True
        suspect = np.flatnonzero(cut & np.isfinite(widths))
        return suspect[np.isfinite(positions[suspect][:, self._i]).all(axis=(1, 2))]

    def _numbers(self, positions: Floats, cells: Floats) -> Floats | None:
        """Count the cell vectors (m, n, 3) that each atom is moved by; None if no atom is."""
        numbers = None
        cut = self._cut(positions, widths_of(cells).min(axis=1))
        if len(cut):
            numbers = np.zeros(positions.shape)
            numbers[cut] = self._joined(positions[cut], _inverse(cells[cut]))
            positions[cut] += numbers[cut] @ cells[cut]
        left = self._apart(positions)
        while len(left):
            k, was_known = int(left[0]), bool(self._touching)
            own = self._placed(positions[k], cells[k])
            if own.any():
                numbers = np.zeros(positions.shape) if numbers is None else numbers
                numbers[k] += own
            left = left[1:] if was_known or not self._touching else left[1:][np.isin(left[1:], self._apart(positions))]
        return numbers

    def _cut(self, positions: Reals, widths: Floats) -> Indices:
        """Find the frames with a bond that is longer than half the cell: the bond runs through a face."""
        if not len(self._linked):
            return np.empty(0, np.intp)
        along = apart_along(positions, self._linked, self._parents[self._linked])
        if not farther_than(along, float(np.nanmin(widths, initial=np.inf)) / 2):
            return np.empty(0, np.intp)
        longest = np.einsum("mki,mki->mk", along, along).max(axis=1)
        return np.flatnonzero(longest > (widths / 2) ** 2)

    def _joined(self, positions: Floats, inverses: Floats) -> Floats:
        """Count the cell vectors (m, n, 3) that bring each atom beside the one that it hangs on."""
        numbers = np.zeros(positions.shape)
        along = apart_along(positions, self._linked, self._parents[self._linked])
        numbers[:, self._linked] = -np.rint(along @ inverses)
        parents = self._parents
        while True:  # an atom moves with all those between it and the root: their sums, by doubling the way
            numbers += numbers[:, parents]
            further = parents[parents]
            if (further == parents).all():
                return numbers
            parents = further

    def _apart(self, positions: Reals) -> Indices:
        """Find the frames in which a molecule no longer touches the others, if molecules touched each other before."""
        if not self._large and not len(self._small):
            return np.empty(0, np.intp)
        if len(self._small) or len(self._touching) < len(self._large):
            return np.arange(len(positions))
        touch = np.ones(len(positions), np.bool_)
        for i, j in self._touching:
            apart = positions[:, i] - positions[:, j]
            touch &= (np.einsum("mki,mki->mk", apart, apart) <= TOUCH**2).any(axis=1)
        return np.flatnonzero(~touch)

    def _placed(self, positions: Floats, cell: Floats) -> Floats:
        """Count the cell vectors (n, 3) that bring molecules of a frame side by side; positions are changed."""
        numbers, inverse = np.zeros(positions.shape), _inverse(cell)
        touching = list[tuple[Indices, Indices]]()
        left = dict(enumerate(self._large))
        near = {k: _nearest(positions, of, self._anchor, cell, inverse) for k, of in left.items()}
        while left:
            k = min(left, key=lambda k: near[k][:2])
            own = left.pop(k)
            numbers[own] = near[k][2]
            positions[own] += near[k][2] @ cell
            touching += near[k][3]
            for other, of in left.items():
                found = _nearest(positions, of, own, cell, inverse)
                near[other] = min(near[other], found, key=lambda each: each[:2])
        if len(touching) == len(self._large):
            self._touching = touching
        if len(self._small):
            by = np.concatenate([_thinned(of) for of in (self._anchor, *self._large)])
            own_numbers = _nearest_each(positions[self._small], positions[by], cell, inverse)
            numbers[self._of_small] = own_numbers[self._each_small]
        return numbers


def apart_along(positions: Reals, i: Indices, j: Indices) -> Reals:
    """Compute the vectors (m, k, 3) from atoms j to atoms i of frames (m, n, 3)."""
    apart: Reals = positions.take(i, axis=1, mode="clip")
    apart -= positions.take(j, axis=1, mode="clip")
    return apart


def farther_than(apart: Reals, distance: float) -> bool:
    """Return whether a vector may be longer than a distance: quicker than by lengths, and true for NaN."""
    largest = max(float(apart.max(initial=0)), -float(apart.min(initial=0)))
    return not largest <= distance / np.sqrt(3)


def _trees(chosen: Indices, bonds: Ints, n_atoms: int) -> tuple[Indices, list[Indices]]:
    """Find the atom (n,) on which each hangs, itself for roots and lone atoms, and the atoms of each molecule."""
    first, second = np.concatenate([bonds, bonds[:, ::-1]]).astype(np.intp).T
    order = np.argsort(first, kind="stable")
    neighbours, starts = second[order].tolist(), np.searchsorted(first[order], np.arange(n_atoms + 1)).tolist()
    parents, seen, molecules = np.arange(n_atoms), np.zeros(n_atoms, np.bool_).tolist(), list[Indices]()
    for root in chosen.tolist():
        if seen[root]:
            continue
        seen[root], members = True, [root]
        for atom in members:  # which grows
            for other in neighbours[starts[atom] : starts[atom + 1]]:
                if not seen[other]:
                    seen[other], parents[other] = True, atom
                    members.append(other)
        molecules.append(np.array(members, np.intp))
    return parents, molecules


def _thinned(atoms: Indices, most: int = _MOST) -> Indices:
    return atoms[:: -(-len(atoms) // most)]


def _inverse(cells: Floats) -> Floats:
    """Invert cells (..., 3, 3)."""
    return np.asarray(np.linalg.inv(cells), np.float64)


def _nearest(
    positions: Floats, moved: Indices, placed: Indices, cell: Floats, inverse: Floats
) -> tuple[bool, float, Floats, list[tuple[Indices, Indices]]]:
    """Bring molecules near: if they are apart, how near they come, the cell vectors (3,) for it, and touching pairs.

    Pairs are told where the molecules touch in place, and then nothing is moved.
    """
    if len(moved) * len(placed) > _MOST_PAIRS:
        moved, placed = _thinned(moved, 4 * _MOST), _thinned(placed, 4 * _MOST)
    a, b = positions[moved], positions[placed]
    middle = b.mean(axis=0)
    a, b = a - middle, b - middle
    squares = (a**2).sum(axis=1)[:, np.newaxis] + (b**2).sum(axis=1) - 2 * a @ b.T
    if squares.min() <= TOUCH**2:
        pairs = np.argpartition(squares.ravel(), min(_KEPT, squares.size) - 1)[:_KEPT]
        i, j = np.unravel_index(pairs, squares.shape)
        return False, float(np.sqrt(max(squares.min(), 0.0))), np.zeros(3), [(moved[i], placed[j])]
    thin_a, thin_b = _thinned(moved), _thinned(placed)
    apart = (positions[thin_a][:, np.newaxis] - positions[thin_b]).reshape(-1, 3) @ inverse
    numbers = -np.rint(apart)
    lengths = (((apart + numbers) @ cell) ** 2).sum(axis=1)
    k = int(lengths.argmin())
    around = (((apart[k] + numbers[k] + _AROUND) @ cell) ** 2).sum(axis=1)
    chosen = numbers[k] + _AROUND[int(around.argmin())]
    if around.min() >= squares.min() - 1e-6:
        return True, float(np.sqrt(squares.min())), np.zeros(3), []
    return True, float(np.sqrt(around.min())), chosen, []


def _nearest_each(points: Floats, placed: Floats, cell: Floats, inverse: Floats) -> Floats:
    """Count the cell vectors (k, 3) that bring each of points (k, 3) nearest to one of the others."""
    found = np.zeros(points.shape)
    step = max(1, _MOST_PAIRS // (4 * len(placed)))
    for first in range(0, len(points), step):
        apart = (points[first : first + step, np.newaxis] - placed) @ inverse
        numbers = -np.rint(apart)
        lengths = (((apart + numbers) @ cell) ** 2).sum(axis=2)
        found[first : first + step] = numbers[np.arange(len(lengths)), lengths.argmin(axis=1)]
    return found


def made_whole(atoms: Atoms, cell: Floats | None) -> Atoms:
    """Make the molecules whole that a cell's faces cut, with a note; leave atoms with fine bonds unchanged.

    cell : (3, 3) A, None where there is none
    """
    if cell is None or not len(impossible_bonds(atoms)):
        return atoms
    positions, moved = Imager(len(atoms), atoms.bonds)(atoms.positions[np.newaxis], usable_cells(cell))
    if not moved[0]:
        return atoms
    return replace(atoms.moved(positions[0]), notes=(*atoms.notes, CUT_NOTE))
