"""Imaging and validation of trajectory frames before their energies are computed."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from .cells import Floats, Image
from .findings import Finding, bond_text, limits_of, of_order
from .imaging import Imager, Indices, Reals, apart_along, farther_than

_TOGETHER = 1 << 15  # bonds measured at a time, to fit in the cache


class FrameContract:
    """Imaging and validation of frames.

    atoms : atoms of the frames; image : "auto" to image frames with a cell, or "none"
    chosen, anchors : as in Imager
    """

    def __init__(
        self, atoms: Atoms, image: Image = "auto", chosen: Indices | None = None, anchors: Indices | None = None
    ) -> None:
        self.atoms, self.image, self._chosen, self._anchors = atoms, image, chosen, anchors
        bonds = atoms.bonds
        if chosen is not None and len(bonds):
            allowed = np.zeros(len(atoms), np.bool_)
            allowed[chosen] = True
            bonds = bonds[allowed[bonds].all(axis=1)]
        self._bonds = bonds
        self._i, self._j = np.ascontiguousarray(bonds.T, np.intp)
        self._most = limits_of(atoms, bonds) ** 2
        self._least = float(np.sqrt(self._most.min(initial=np.inf)))

    def with_image(self, image: Image) -> FrameContract:
        """Return a copy with another `image` option."""
        return self if image == self.image else FrameContract(self.atoms, image, self._chosen, self._anchors)

    @cached_property
    def _imager(self) -> Imager:
        return Imager(len(self.atoms), self.atoms.bonds, self._chosen, self._anchors)

    def __call__(
        self, positions: Reals, cells: Floats | None
    ) -> tuple[Reals, NDArray[np.bool_], dict[int, str]]:  # fmt: skip
        """Image frames. Returns positions (m, n, 3) A, a mask (m,) of imaged frames, and errors by frame index.

        cells : (m, 3, 3) A, NaN for frames without a cell; None if no frame has one
        """
        imaged = np.zeros(len(positions), np.bool_)
        if cells is not None and self.image == "auto" and len(self._bonds):
            positions, imaged = self._imager(positions, cells)
        return positions, imaged, self._torn(positions, cells)

    def of_order(self, positions: Reals) -> list[Finding]:
        """Return findings about a frame (n, 3) A whose bonds suggest a different order of atoms."""
        return of_order(self.atoms, self._bonds, np.asarray(positions, np.float64))

    def _torn(self, positions: Reals, cells: Floats | None) -> dict[int, str]:
        """Return errors for frames with impossible bonds, by frame index."""
        if not len(self._bonds):
            return {}
        i, j = self._i, self._j
        suspect = list[int]()
        step = max(1, _TOGETHER // len(i))
        for first in range(0, len(positions), step):
            part = positions[first : first + step]
            if farther_than(apart_along(part, i, j), self._least):
                suspect += range(first, first + len(part))
        return self._reasons(positions, suspect, cells) if suspect else {}

    def _reasons(self, positions: Reals, suspect: list[int], cells: Floats | None) -> dict[int, str]:
        """Return errors for some frames with possibly impossible bonds, by frame index."""
        i, j = self._i, self._j
        found = dict[int, str]()
        apart = apart_along(positions[suspect], i, j)
        squares = np.einsum("mki,mki->mk", apart, apart)
        beyond = (squares > self._most) & np.isfinite(squares)  # NaN positions cause errors in the evaluation
        for row in np.flatnonzero(beyond.any(axis=1)).tolist():
            k, worst = suspect[row], int(np.where(beyond[row], squares[row] / self._most, 0).argmax())
            has_cell = cells is not None and bool(np.isfinite(cells[k]).all())
            if not has_cell:
                why = (
                    "the frame has no unit cell with which the molecule could be made whole, or its atoms are "
                    "in another order"
                )
            elif self.image == "none":
                why = "use `image='auto'`"
            else:
                why = "no periodic image of the atoms restores the bond"
            text = bond_text(self.atoms, int(i[worst]), int(j[worst]), float(np.sqrt(squares[row, worst])))
            found[k] = f"{text}; {why}"
        return found
