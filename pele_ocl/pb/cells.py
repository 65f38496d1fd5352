"""Cell lists of spheres, used by kernels to find the spheres near a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .launching import Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

MOST_CELLS = 1 << 24

Spheres = tuple[Floats, Floats]  # centres (n, 3) A and radii (n,) A


@dataclass(frozen=True, eq=False)
class Cells:
    """Cell lists of spheres on a device, one row per problem. Cells are at least as long as the largest radius.

    counts : number of spheres per row; arguments : for kernels that take CELLS (cl/pb/cells.clh)
    """

    counts: tuple[int, ...]
    arguments: dict[str, Any]

    @classmethod
    def of(cls, launching: Launching, rows: Sequence[Spheres]) -> Cells:
        """Sort the spheres of each row into cells."""
        queue, cells, starts, members, places = launching.queue, [], [], [], []
        firsts = np.cumsum([0, *(len(radii) for _, radii in rows)])
        n_starts = 0
        for first, (centres, radii) in zip(firsts.tolist(), rows, strict=False):
            shape, own_starts, order, place = _sorted_by_cell(centres, radii)
            cells.append((*shape, n_starts))
            n_starts += len(own_starts)
            starts.append(own_starts + first)
            members.append(order + first)
            places.append(place)
        spheres = np.concatenate([np.column_stack(row) for row in rows])
        return cls(tuple(len(radii) for _, radii in rows), {
            "cells_of_rows": queue.send(cells, np.int32), "first_spheres": queue.send(firsts, np.int32),
            "places": launching.vectors(np.concatenate(places)),
            "all_starts": queue.send(np.concatenate(starts), np.int32),
            "cell_members": queue.send(np.concatenate(members), np.int32), "cell_spheres": launching.vectors(spheres),
        })  # fmt: skip

    @property
    def count(self) -> int:
        """Number of spheres in all rows."""
        return sum(self.counts)

    @property
    def spheres(self) -> Buffer:
        """Centres and radii, (count) vectors of four, A."""
        buffer: Buffer = self.arguments["cell_spheres"]
        return buffer


def _sorted_by_cell(
    centres: Floats, radii: Floats
) -> tuple[list[int], NDArray[np.integer], NDArray[np.integer], Floats]:
    """Sort spheres by cell.

    Returns the number of cells along each axis, the start of each cell in the sorted spheres, their order, and the
    corner, largest radius and cell length (see CELLS in cl/pb/cells.clh).
    """
    if not len(radii):
        return [1, 1, 1], np.zeros(2, np.int64), np.zeros(0, np.int64), np.array([[0.0, 0, 0, 0], [1, 0, 0, 0]])
    largest, axes = float(radii.max()), np.ascontiguousarray(centres.T)
    edge = largest + 1e-6
    while True:
        corner = axes.min(axis=1) - 2 * edge
        cell = np.floor((axes - corner[:, None]) / edge).astype(np.int64)
        cells = cell.max(axis=1) + 3
        if float(np.prod(cells.astype(float))) <= MOST_CELLS:
            break
        edge *= 2  # limits the number of cells if spheres are far apart
    n_cells = int(cells.prod())
    number = (cell[2] * cells[1] + cell[1]) * cells[0] + cell[0]
    order = np.argsort(number.astype(np.min_scalar_type(n_cells)), kind="stable")  # faster with short integers
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=n_cells))])
    return cells.tolist(), starts, order, np.array([[*corner, largest], [edge, 0, 0, 0]])
