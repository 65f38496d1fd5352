"""1/r as a near part, which ends at the cutoff, and an ever smoother part for each lattice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ...atoms import Floats
from ..mesh.split import NodeWeights


@dataclass(frozen=True)
class Interpolant(NodeWeights):
    """Nodal function phi over P lattice points, 1 at its own and 0 at all others; docs/theory/msm.md, eq. 4.

    nodes : P, even. Between two points the polynomials through the P - 1 points around either are blended linearly.
        Together they have degree P - 1; 4 is the cubic, 6 the quintic one of the textbooks
    """

    nodes: int

    @cached_property
    def pieces(self) -> Floats:
        before = self.nodes // 2 - 1
        places = np.arange(self.nodes, dtype=np.int64) - before
        t = Polynomial([0.5, 1.0])  # from the point on the left, of the fraction less 1/2
        found = np.zeros((self.nodes, self.nodes))
        for j, own in enumerate(places.tolist()):
            left, right = _basis(places[:-1], own, t), _basis(places[1:], own, t)
            powers = ((1 - t) * left + t * right).coef
            found[j, : len(powers)] = powers
        return found

    def value(self, x: Floats) -> Floats:
        """phi at distances x, in spacings."""
        away = np.abs(np.asarray(x, np.float64))
        left = np.minimum(np.floor(away).astype(int), self.nodes // 2 - 1)
        weights = self.at(away - left - 0.5)[0]
        values: Floats = np.take_along_axis(weights, (self.nodes // 2 - 1 - left)[:, None], axis=1)[:, 0]
        return np.where(away < self.nodes / 2, values, 0.0)

    @cached_property
    def shares(self) -> Floats:
        """(P + 1,) of a coarse point's function on the points of the next finer lattice: at odd steps, and at none."""
        odd = np.arange(1 - self.nodes, self.nodes, 2)
        return self.value(np.append(odd, 0) / 2)


def _basis(places: NDArray[np.int64], own: int, t: Polynomial) -> Polynomial:
    """Build the polynomial that is 1 at one of the places and 0 at the others. It is 0 if `own` is none of them."""
    found = Polynomial([float(own in places.tolist())])
    for other in places[places != own].tolist():
        found = found * (t - other) / (own - other)
    return found


@dataclass(frozen=True)
class Splitting:
    """docs/theory/msm.md, eq. 1 to 3.

    order : of Taylor's series of the softened potential; cutoff : a, A, where the near part ends
    """

    order: int
    cutoff: float

    @cached_property
    def _series(self) -> Polynomial:
        """Series of s^(-1/2) about 1, in s - 1."""
        steps = 1 + np.arange(self.order)
        return Polynomial(np.cumprod([1.0, *(-(steps - 0.5) / steps)]))

    def softened(self, share: Floats) -> Floats:
        """gamma at r/a: 1/share beyond 1, finite and smooth within."""
        square = share * share
        values: Floats = np.where(
            square < 1, self._series(np.minimum(square, 1) - 1), 1 / np.sqrt(np.maximum(square, 1))
        )
        return values

    @property
    def near(self) -> tuple[Floats, Floats]:
        """Coefficients of A and B, lowest first, in 2 r^2/a^2 - 1: the near part is A/r - B."""
        inner = self._series(Polynomial([-0.5, 0.5])) / self.cutoff
        return np.ones(1), np.asarray(inner.coef, np.float64)

    def reach(self, spacing: float) -> int:
        """Count lattice points from a charge to the last one within the lattice's cutoff, twice the atoms'."""
        return int(np.ceil(2 * self.cutoff / spacing - 1e-9)) - 1

    def between(self, r: Floats) -> Floats:
        """Compute the potential [1/A] of the finest lattice at distances r.

        The next one's is half of it at half of r.
        """
        of_here = self.softened(r / self.cutoff) / self.cutoff
        return of_here - self.softened(r / (2 * self.cutoff)) / (2 * self.cutoff)

    def coarsest(self, r: Floats) -> Floats:
        """Compute the potential of the last lattice, which has no cutoff."""
        return self.softened(r / self.cutoff) / self.cutoff
