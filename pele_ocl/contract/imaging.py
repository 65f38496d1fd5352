"""Imaging of frames: molecules are made whole and moved next to each other by lattice vectors."""

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
    "molecules were cut by the faces of the cell; they were made whole and placed next to the largest one",
    code="imaged",
)
TOUCH = 3.0  # A, distance of touching molecules, which are not moved
_SMALL = 5  # largest number of atoms in water and ions, which are placed last
_MOST_LARGE = 64  # molecules placed one by one; if there are more, the smallest are placed like water
_MOST = 512  # atoms per molecule used to find the nearest image
_MOST_PAIRS = 1 << 22  # pairs of atoms compared at a time
_CHUNK = 1 << 16  # atoms processed at a time
_KEPT = 8  # pairs of touching atoms remembered for the next frames
_AROUND = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


class Imager:
    """Make the molecules of frames whole and move each to the image closest to the others.

    Molecules are defined by bonds. The largest molecule stays in place. Then the molecule closest to the placed ones is
    added repeatedly, and finally water and ions. Molecules that already touch are not moved.
    """

    def __init__(
        self, n_atoms: int, bonds: Ints, chosen: Indices | None = None, anchors: Indices | None = None
    ) -> None:
        """Find the molecules.

        chosen : (k,) indices of atoms that may be moved, in any order; None for all
        anchors : indices of atoms, whose largest molecule stays in place; None for all
        """
        self._i = np.arange(n_atoms) if chosen is None else np.unique(chosen)
        allowed = np.zeros(n_atoms, np.bool_)
        allowed[self._i] = True
        bonds = bonds[allowed[bonds].all(axis=1)]
        self._parents, molecules = _trees(self._i, bonds, n_atoms)
        self._linked = self._i[self._parents[self._i] != self._i]  # every atom with a parent
        may_anchor = allowed.copy()
        if anchors is not None and len(anchors):
            may_anchor[:] = False
            may_anchor[anchors] = True
        molecules.sort(key=lambda of: (-len(of), of[0]))
        first = max(range(len(molecules)), key=lambda k: (int(may_anchor[molecules[k]].sum()), -k))
        self._anchor = molecules.pop(first)
        self._large = [of for of in molecules if len(of) > _SMALL][:_MOST_LARGE]
        small = molecules[len(self._large) :]
        self._small = np.array([of[0] for of in small], np.intp)  # the first atom of each, used as its position
        self._of_small = np.concatenate([*small, np.empty(0, np.intp)]).astype(np.intp)
        self._each_small = np.repeat(np.arange(len(small)), [len(of) for of in small])
        self._touching: list[tuple[Indices, Indices]] = []  # for each large molecule, in the last frame

    def __call__(self, positions: Reals, cells: Floats) -> tuple[Reals, NDArray[np.bool_]]:
        """Image the positions (m, n, 3) A of frames. Returns the positions, and a mask (m,) of changed frames.

        cells : (m, 3, 3) A, NaN for frames without a cell, which are not changed

        If no atom is moved, the input is returned; otherwise a copy in float64.
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
        """Return the frames that may need imaging, with a cell and finite positions."""
        widths = widths_of(cells).min(axis=1)
        cut = np.zeros(len(positions), np.bool_)
        cut[self._cut(positions, widths)] = True
        cut[self._apart(positions)] = True
        suspect = np.flatnonzero(cut & np.isfinite(widths))
        return suspect[np.isfinite(positions[suspect][:, self._i]).all(axis=(1, 2))]

    def _numbers(self, positions: Floats, cells: Floats) -> Floats | None:
        """Return the number of cell vectors (m, n, 3) by which atoms are moved; None if no atom is moved."""
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
        """Return the frames with a bond longer than half of the cell, which crosses its boundary."""
        if not len(self._linked):
            return np.empty(0, np.intp)
        along = apart_along(positions, self._linked, self._parents[self._linked])
        if not farther_than(along, float(np.nanmin(widths, initial=np.inf)) / 2):
            return np.empty(0, np.intp)
        longest = np.einsum("mki,mki->mk", along, along).max(axis=1)
        return np.flatnonzero(longest > (widths / 2) ** 2)

    def _joined(self, positions: Floats, inverses: Floats) -> Floats:
        """Return the number of cell vectors (m, n, 3) that move each atom next to its parent."""
        numbers = np.zeros(positions.shape)
        along = apart_along(positions, self._linked, self._parents[self._linked])
        numbers[:, self._linked] = -np.rint(along @ inverses)
        parents = self._parents
        while True:  # sum over all ancestors by pointer doubling
            numbers += numbers[:, parents]
            further = parents[parents]
            if (further == parents).all():
                return numbers
            parents = further

    def _apart(self, positions: Reals) -> Indices:
        """Return the frames in which a molecule may no longer touch the others."""
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
        """Return the number of cell vectors (n, 3) that move molecules next to each other. Modifies positions."""
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
    """Return the vectors (m, k, 3) from atoms j to atoms i in frames (m, n, 3)."""
    apart: Reals = positions.take(i, axis=1, mode="clip")
    apart -= positions.take(j, axis=1, mode="clip")
    return apart


def farther_than(apart: Reals, distance: float) -> bool:
    """Return whether any vector may be longer than a distance. This is a quick test, and True for NaN."""
    largest = max(float(apart.max(initial=0)), -float(apart.min(initial=0)))
    return not largest <= distance / np.sqrt(3)


def _trees(chosen: Indices, bonds: Ints, n_atoms: int) -> tuple[Indices, list[Indices]]:
    """Return the parent (n,) of each atom in a spanning tree, itself for roots, and the atoms of each molecule."""
    first, second = np.concatenate([bonds, bonds[:, ::-1]]).astype(np.intp).T
    order = np.argsort(first, kind="stable")
    neighbours, starts = second[order].tolist(), np.searchsorted(first[order], np.arange(n_atoms + 1)).tolist()
    parents, seen, molecules = np.arange(n_atoms), np.zeros(n_atoms, np.bool_).tolist(), list[Indices]()
    for root in chosen.tolist():
        if seen[root]:
            continue
        seen[root], members = True, [root]
        for atom in members:  # grows during the loop
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
    """Find the image of a molecule nearest to another one.

    Returns whether they are apart, their distance after imaging, the number of cell vectors (3,), and touching pairs.
    Molecules that already touch are not moved; touching pairs are only returned for these.
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
    """Return the number of cell vectors (k, 3) that move each point (k, 3) closest to any placed point."""
    found = np.zeros(points.shape)
    step = max(1, _MOST_PAIRS // (4 * len(placed)))
    for first in range(0, len(points), step):
        apart = (points[first : first + step, np.newaxis] - placed) @ inverse
        numbers = -np.rint(apart)
        lengths = (((apart + numbers) @ cell) ** 2).sum(axis=2)
        found[first : first + step] = numbers[np.arange(len(lengths)), lengths.argmin(axis=1)]
    return found


def made_whole(atoms: Atoms, cell: Floats | None) -> Atoms:
    """Make molecules split by the periodic cell whole, and add a note. Other atoms are returned unchanged.

    cell : (3, 3) A, None without a cell
    """
    if cell is None or not len(impossible_bonds(atoms)):
        return atoms
    positions, moved = Imager(len(atoms), atoms.bonds)(atoms.positions[np.newaxis], usable_cells(cell))
    if not moved[0]:
        return atoms
    return replace(atoms.moved(positions[0]), notes=(*atoms.notes, CUT_NOTE))
