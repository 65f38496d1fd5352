"""Window through which charges are spread onto a mesh, and values taken from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Chebyshev, Legendre, Polynomial

from ...atoms import Floats
from .prolate import prolate, within


class NodeWeights(ABC):
    """Weights of the P nodes around a charge or a point, as polynomials of its place between two of them."""

    nodes: int

    @property
    @abstractmethod
    def pieces(self) -> Floats:
        """(P, degree + 1) the weight of each node as powers, lowest first, of the fraction of a spacing less 1/2.

        The first node stands P/2 - 1 before the one to the left of the charge.
        """

    def at(self, fractions: Floats) -> tuple[Floats, Floats]:
        """(n, P) weights of the nodes around n points, and their derivatives, from `pieces`."""
        weights = np.zeros((len(fractions), self.nodes))
        slopes = np.zeros_like(weights)
        for powers in self.pieces.T[::-1]:
            slopes = slopes * fractions[:, None] + weights
            weights = weights * fractions[:, None] + powers
        return weights, slopes


@dataclass(frozen=True)
class Window(NodeWeights):
    """A prolate function over P nodes, of integral 1; docs/theory/mesh.md, eq. 5.

    nodes : P; width : bandwidth over pi P / 2; degree : of the polynomials of `pieces`
    """

    nodes: int
    width: float
    degree: int

    @property
    def _psi(self) -> Legendre:
        return prolate(self.width * np.pi * self.nodes / 2)

    @cached_property
    def _area(self) -> float:
        integral = self._psi.integ()
        return float(self.nodes / 2 * (integral(1) - integral(-1)))

    def weight(self, x: Floats) -> Floats:
        """Weight of a node x spacings away."""
        return within(self._psi, 2 * x / self.nodes) / self._area

    def slope(self, x: Floats) -> Floats:
        """Derivative of `weight`."""
        return within(self._psi.deriv(), 2 * x / self.nodes) * (2 / self.nodes / self._area)

    def transformed(self, share: Floats) -> Floats:
        """Fourier transform at wave numbers of this share of pi / spacing."""
        return within(self._psi, share / self.width)

    @cached_property
    def pieces(self) -> Floats:
        first = self.nodes // 2 - 1

        def powers(j: int) -> Floats:
            series = Chebyshev.interpolate(lambda t: self.weight(t + 0.5 + first - j), self.degree, domain=[-0.5, 0.5])
            coefficients = np.asarray(series.convert(kind=Polynomial, domain=[-1, 1]).coef, np.float64)
            return np.pad(coefficients, (0, self.degree + 1 - len(coefficients)))

        return np.array([powers(j) for j in range(self.nodes)])
