"""Positions of lattice points, and stencils of the sums on lattices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints

LONGEST = 34  # maximum points per axis of the last lattice; its planes must fit in 48 KiB of local memory in float64


@dataclass(frozen=True, eq=False)
class LatticeLevel:
    """Lattice points, with indices in units of the spacing; all lattices have the same origin.

    low : (3,) the first point; shape : (3,) points along x, y, z
    """

    low: NDArray[np.int64]
    shape: NDArray[np.int64]

    def coarser(self, nodes: int) -> LatticeLevel:
        """Return the lattice with twice the spacing that contains the `nodes` around each of these points."""
        high = self.low + self.shape - 1
        low = self.low // 2 - (nodes // 2 - 1)
        return LatticeLevel(low, (high + 1) // 2 + (nodes // 2 - 1) - low + 1)

    def first_of(self, coarse: LatticeLevel) -> NDArray[np.int64]:
        """Return the first point of the next coarser lattice as an index in this one, (3,)."""
        found: NDArray[np.int64] = 2 * coarse.low - self.low
        return found

    @property
    def n_points(self) -> int:
        """Total number of points."""
        return math.prod(self.shape.tolist())


def levels_from(finest: LatticeLevel, nodes: int, n_terms: int) -> list[LatticeLevel]:
    """Return the lattices from the finest to the coarsest, where all charges interact with all points.

    The coarsest lattice minimizes the number of terms, unless it exceeds LONGEST and can be reduced further.

    n_terms : terms per point on the other lattices
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
        """Number of nonzero weights."""
        return int(np.count_nonzero(self.weights))

    @classmethod
    def of(cls, potential: Callable[[Floats], Floats], spacing: float, reach: NDArray[np.int64]) -> Stencil:
        """potential : function of distances [A]"""
        squares = [np.arange(-n, n + 1, dtype=float) ** 2 for n in reach]
        r2 = squares[2][:, None, None] + squares[1][:, None] + squares[0]
        weights = potential(spacing * np.sqrt(r2))
        steps = np.abs(np.arange(-reach[0], reach[0] + 1))
        extents = np.where(weights != 0, steps, -1).max(axis=2)
        return cls(reach, weights, extents.astype(np.int32))
