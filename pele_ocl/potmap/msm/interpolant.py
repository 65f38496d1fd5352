"""Interpolants of multilevel summation: piecewise polynomials with a continuous slope."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ...atoms import Floats
from ..mesh.window import NodeWeights


@dataclass(frozen=True)
class Interpolant(NodeWeights):
    """Nodal function phi over P lattice points, 1 at its own and 0 at all others; docs/theory/msm.md, eq. 4.

    nodes : P, even. Between two points the polynomials through the P - 1 points around either are blended linearly.
        Together they have degree P - 1; 4 is the cubic, 6 the quintic one of the text books
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
