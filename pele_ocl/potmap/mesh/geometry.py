"""Places of the nodes of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints

Box = tuple[Floats, Floats]  # the lowest and the highest corner, A
FACTORS = (2, 3, 5, 7)  # of the lengths that are transformed
OFF = 1e-6  # spacings, by which rounding may take a point that stands on a node to either side of it, at most


@dataclass(frozen=True, eq=False)
class MeshGeometry:
    """Nodes corner + spacing * (i, j, k) around all atoms and all points of a map.

    corner : (3,) A, from the origin of the problem; shape : (3,) nodes along x, y, z
    lengths : (3,) of the transforms, at least twice as many, so that no period is seen
    """

    corner: Floats
    spacing: float
    shape: NDArray[np.int64]
    lengths: NDArray[np.int64]
    window_nodes: int

    @classmethod
    def of(cls, box: Box, spacing: float, window_nodes: int) -> MeshGeometry:
        """box : of all atoms and points; window_nodes : P of the window, which must fit around each of them"""
        low, shape = nodes_around(box, spacing, window_nodes)
        lengths = np.array([transform_length(2 * int(n) - 1) for n in shape])
        corner: Floats = np.asarray(low * spacing, np.float64)
        return cls(corner, spacing, shape, lengths, window_nodes)

    def placed(self, positions: Floats, axis: int | slice = slice(None)) -> tuple[Ints, Floats]:
        """Find the first of the P nodes of positions [A] along axes, and the fraction of a spacing less 1/2."""
        fractions = positions - self.corner[axis]
        fractions /= self.spacing
        base = np.floor(fractions)
        fractions -= base
        fractions -= 0.5
        first = base.astype(np.int32)
        first -= self.window_nodes // 2 - 1
        return first, fractions


def nodes_around(box: Box, spacing: float, window_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find (3,) the first node around all contents of a box, and count the nodes from it along x, y, z."""
    low, high = (np.floor(end / spacing + off).astype(np.int64) for end, off in zip(box, (-OFF, OFF), strict=True))
    low, high = low - window_nodes // 2 + 1, high + window_nodes // 2
    return low, high - low + 1


@cache
def transform_length(least: int) -> int:
    """Find the smallest even number of at least `least` with no prime factors but FACTORS."""
    length = least + least % 2
    while not is_smooth(length):
        length += 2
    return length


def is_smooth(n: int) -> bool:
    """Tell if a length has no prime factors but FACTORS."""
    for factor in FACTORS:
        while n % factor == 0:
            n //= factor
    return n == 1
