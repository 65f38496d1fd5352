"""Splitting of 1/r into a near part, which ends at the cutoff, and increasingly smooth parts for the lattices."""

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
    """Nodal function phi over P lattice points, 1 at its node and 0 at all others; see docs/theory/msm.md, eq. 4.

    nodes : P, even. Between two points, the interpolating polynomials of the P - 1 points around each are blended
        linearly. The result has degree P - 1; P = 4 and 6 are the cubic and quintic functions of the textbooks
    """

    nodes: int

    @cached_property
    def pieces(self) -> Floats:
        before = self.nodes // 2 - 1
        places = np.arange(self.nodes, dtype=np.int64) - before
        t = Polynomial([0.5, 1.0])  # distance from the point on the left, in terms of the fraction minus 1/2
        found = np.zeros((self.nodes, self.nodes))
        for j, own in enumerate(places.tolist()):
            left, right = _basis(places[:-1], own, t), _basis(places[1:], own, t)
            powers = ((1 - t) * left + t * right).coef
            found[j, : len(powers)] = powers
        return found

    def value(self, x: Floats) -> Floats:
        """Return phi at distances x, in spacings."""
        away = np.abs(np.asarray(x, np.float64))
        left = np.minimum(np.floor(away).astype(int), self.nodes // 2 - 1)
        weights = self.at(away - left - 0.5)[0]
        values: Floats = np.take_along_axis(weights, (self.nodes // 2 - 1 - left)[:, None], axis=1)[:, 0]
        return np.where(away < self.nodes / 2, values, 0.0)

    @cached_property
    def shares(self) -> Floats:
        """Weights (P + 1,) of a coarse point at the points of the next finer lattice: at odd steps, and at step 0."""
        odd = np.arange(1 - self.nodes, self.nodes, 2)
        return self.value(np.append(odd, 0) / 2)


def _basis(places: NDArray[np.int64], own: int, t: Polynomial) -> Polynomial:
    """Return the polynomial that is 1 at `own` and 0 at the other places; 0 if `own` is not among them."""
    found = Polynomial([float(own in places.tolist())])
    for other in places[places != own].tolist():
        found = found * (t - other) / (own - other)
    return found


@dataclass(frozen=True)
class Splitting:
    """Splitting of the potential; see docs/theory/msm.md, eq. 1 to 3.

    order : of the Taylor series of the softened potential; cutoff : a, cutoff of the near part, A
    """

    order: int
    cutoff: float

    @cached_property
    def _series(self) -> Polynomial:
        """Taylor series of s^(-1/2) about 1, in s - 1."""
        steps = 1 + np.arange(self.order)
        return Polynomial(np.cumprod([1.0, *(-(steps - 0.5) / steps)]))

    def softened(self, share: Floats) -> Floats:
        """Return gamma at share = r/a: 1/share beyond 1, finite and smooth below."""
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
        """Return the number of lattice points within the cutoff of the finest lattice, 2 a, along an axis."""
        return int(np.ceil(2 * self.cutoff / spacing - 1e-9)) - 1

    def between(self, r: Floats) -> Floats:
        """Return the potential [1/A] of the finest lattice at distances r.

        On each coarser lattice it is half the value at r/2.
        """
        of_here = self.softened(r / self.cutoff) / self.cutoff
        return of_here - self.softened(r / (2 * self.cutoff)) / (2 * self.cutoff)

    def coarsest(self, r: Floats) -> Floats:
        """Return the potential of the coarsest lattice, which has no cutoff."""
        return self.softened(r / self.cutoff) / self.cutoff
