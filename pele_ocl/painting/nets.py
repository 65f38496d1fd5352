"""Surface of value 0 in numbers on a grid, by naive surface nets (Gibson, MICCAI 1998, 888).

Every cell that the surface passes through has one vertex, the mean of its edges' points on the surface. Every edge of
the grid that meets it gives a quadrilateral of the four cells around, which is two triangles. Unlike marching cubes it
needs no table of cases, and its triangles are of even size.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints

_CORNERS = list(product((0, 1), repeat=3))  # of a cell: z, y, x
_EDGES = [(a, b) for a, b in product(_CORNERS, repeat=2) if sum(b) - sum(a) == 1 and all(np.subtract(b, a) >= 0)]


def surface_net(values: NDArray[np.floating]) -> tuple[Floats, Ints]:
    """Vertices and triangles of the surface between negative and other values.

    values : (nz, ny, nx), finite; a surface that leaves the grid ends there

    Returns vertices (n_vertices, 3), fractional indices along x, y, z, and faces (n_faces, 3). The vertices of each
    triangle go counter-clockwise, seen from the side of positive values.
    """
    inside = values < 0
    cells = _crossed(inside)
    vertices = _vertices(values, cells)
    number = np.full(np.maximum(np.array(values.shape) - 1, 0), -1, np.int32)
    number[cells] = np.arange(len(vertices), dtype=np.int32)
    faces = [_faces(inside, number, axis) for axis in range(3)]
    return vertices, np.concatenate(faces)


def _crossed(inside: NDArray[np.bool_]) -> tuple[NDArray[np.intp], ...]:
    """Find the cells whose corners are not all on one side, as three arrays of indices k, j, i."""
    n_inside = np.zeros(np.maximum(np.array(inside.shape) - 1, 0), np.uint8)
    for corner in _CORNERS:
        n_inside += inside[tuple(slice(at, at + n) for at, n in zip(corner, n_inside.shape, strict=True))]
    return np.nonzero((n_inside > 0) & (n_inside < 8))


def _vertices(values: NDArray[np.floating], cells: tuple[NDArray[np.intp], ...]) -> Floats:
    """Find the vertex of each cell, (n, 3) fractional indices along x, y, z."""
    low = np.stack(cells, axis=1)
    at = {corner: values[tuple((low + corner).T)].astype(np.float64) for corner in _CORNERS}
    total, count = np.zeros((len(low), 3)), np.zeros(len(low))
    for start, end in _EDGES:
        crosses = (at[start] < 0) != (at[end] < 0)
        step = np.where(crosses, at[start] - at[end], 1.0)
        share = np.where(crosses, at[start] / step, 0.0)
        place = np.array(start) + share[:, None] * np.subtract(end, start)
        total += np.where(crosses[:, None], place, 0.0)
        count += crosses
    place = low + total / np.maximum(count, 1)[:, None]
    return np.ascontiguousarray(place[:, ::-1])


def _faces(inside: NDArray[np.bool_], number: Ints, axis: int) -> Ints:
    """Make the triangles across the edges of the grid along an axis, 0 for z, if all four cells exist."""
    order = (axis, (axis + 1) % 3, (axis + 2) % 3)
    turned, cells = inside.transpose(order), number.transpose(order)
    before, behind = turned[:-1, 1:-1, 1:-1], turned[1:, 1:-1, 1:-1]
    n, m = before.shape[1:]
    around = [cells[:, i : i + n, j : j + m] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    # z, y, x are left-handed: this turn is clockwise as seen from further along the axis.
    turns = ((~before & behind, around), (before & ~behind, around[::-1]))
    four = np.concatenate([np.stack([each[crossed] for each in turn], 1) for crossed, turn in turns])
    return np.concatenate([four[:, [0, 1, 2]], four[:, [0, 2, 3]]])
