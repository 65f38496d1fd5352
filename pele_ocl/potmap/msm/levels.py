"""Places of the points of the lattices, and the weights of the sums on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints

LONGEST = 34  # points of the last lattice along an axis, whose planes are to fit into 48 KiB of local memory in float64


@dataclass(frozen=True, eq=False)
class LatticeLevel:
    """Points of a lattice, counted along each axis in its own spacings from one origin for all lattices.

    low : (3,) the first point; shape : (3,) points along x, y, z
    """

    low: NDArray[np.int64]
    shape: NDArray[np.int64]

    def coarser(self, nodes: int) -> LatticeLevel:
        """Make the lattice of twice the spacing on which all of these points find the `nodes` around them."""
        high = self.low + self.shape - 1
        low = self.low // 2 - (nodes // 2 - 1)
        return LatticeLevel(low, (high + 1) // 2 + (nodes // 2 - 1) - low + 1)

    def first_of(self, coarse: LatticeLevel) -> NDArray[np.int64]:
        """(3,) the point of this lattice on which the first of a coarser one stands, counted from this one's first."""
        found: NDArray[np.int64] = 2 * coarse.low - self.low
        return found

    @property
    def n_points(self) -> int:
        """Number of points in all."""
        return math.prod(self.shape.tolist())


def levels_from(finest: LatticeLevel, nodes: int, n_terms: int) -> list[LatticeLevel]:
    """Lattices, the finest first. In the last one all charges meet all points.

    It is the one with the fewest terms, or a later one that is at most LONGEST.

    n_terms : of a point's sum on the others
    """
    levels = [finest]
    while True:
        last = levels[-1]
        coarser = last.coarser(nodes)
        terms = last.n_points * n_terms + coarser.n_points**2
        is_long = LONGEST < last.shape.max() > coarser.shape.max()
        if terms >= last.n_points**2 and not is_long:
            return levels
        levels.append(coarser)


@dataclass(frozen=True, eq=False)
class Stencil:
    """Weights of a sum over the charges around a lattice point.

    reach : (3,) points along x, y, z; weights : (2 reach_z + 1, 2 reach_y + 1, 2 reach_x + 1)
    extents : (2 reach_z + 1, 2 reach_y + 1) reach along x of each row of weights, -1 for rows of 0
    """

    reach: NDArray[np.int64]
    weights: Floats
    extents: Ints

    @property
    def n_terms(self) -> int:
        """Weights that are not 0."""
        return int(np.count_nonzero(self.weights))

    @classmethod
    def of(cls, potential: Callable[[Floats], Floats], spacing: float, reach: NDArray[np.int64]) -> Stencil:
        """potential : at distances [A]"""
        squares = [np.arange(-n, n + 1, dtype=float) ** 2 for n in reach]
        r2 = squares[2][:, None, None] + squares[1][:, None] + squares[0]
        weights = potential(spacing * np.sqrt(r2))
        steps = np.abs(np.arange(-reach[0], reach[0] + 1))
        extents = np.where(weights != 0, steps, -1).max(axis=2)
        return cls(reach, weights, extents.astype(np.int32))
