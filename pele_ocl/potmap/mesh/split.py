"""Split of exp(-kappa r)/r into a near part, which ends at a cutoff, and a far part for a mesh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.polynomial import Chebyshev, Legendre, Polynomial

from ...atoms import Floats

QUADRATURE = 100  # points for integrals over the spectrum, exact to rounding for k r below 200
SPECTRUM_STEPS = 1 << 17


@cache
def prolate(c: float) -> Legendre:
    """Return psi_c on [-1, 1] with psi_c(0) = 1, as a Legendre series.

    c : bandwidth; outside [-1, 1] psi_c is defined as 0, and its Fourier transform is psi_c scaled by c

    The coefficients are the eigenvector of a tridiagonal matrix over even degrees with the smallest eigenvalue (Xiao,
    Rokhlin and Yarvin, Inverse Problems 17, 805 (2001), eq. 67).
    """
    k = np.arange(0.0, 2 * int(c) + 60, 2)
    diagonal = k * (k + 1) + (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)) * c * c
    beside = ((k + 2) * (k + 1) / ((2 * k + 3) * np.sqrt((2 * k + 1) * (2 * k + 5))) * c * c)[:-1]
    vector = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))[1][:, 0]
    series = np.zeros(2 * len(k) - 1)
    series[::2] = vector * np.sqrt(k + 0.5)
    return Legendre(series / Legendre(series)(0.0)).trim()


def within(function: Legendre, x: Floats) -> Floats:
    """Evaluate a function on [-1, 1] at x; 0 outside."""
    values: Floats = np.where(np.abs(x) <= 1, function(np.clip(x, -1, 1)), 0.0)
    return values


class NodeWeights(ABC):
    """Weights of the P nodes around a charge or a point, as polynomials of its position between two of them."""

    nodes: int

    @property
    @abstractmethod
    def pieces(self) -> Floats:
        """Polynomial coefficients (P, degree + 1) of the node weights, lowest first.

        The argument is the fraction of a spacing minus 1/2. The first node is P/2 - 1 nodes to the left of the last
        node before the charge.
        """

    def at(self, fractions: Floats, has_slopes: bool = True) -> tuple[Floats, Floats]:
        """Return (n, P) weights of the nodes around n points, and their derivatives, from `pieces`.

        has_slopes : whether to compute derivatives; else they are 0
        """
        weights = np.zeros((len(fractions), self.nodes))
        slopes, x = np.zeros_like(weights), fractions[:, None]
        for powers in self.pieces.T[::-1]:
            if has_slopes:
                slopes *= x
                slopes += weights
            weights *= x
            weights += powers
        return weights, slopes


@dataclass(frozen=True)
class Window(NodeWeights):
    """Prolate function over P nodes, with integral 1; see docs/theory/mesh.md, eq. 5.

    nodes : P; width : bandwidth divided by pi P / 2; degree : of the polynomials in `pieces`
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
        """Return the weight of a node at a distance of x spacings."""
        return within(self._psi, 2 * x / self.nodes) / self._area

    def slope(self, x: Floats) -> Floats:
        """Return the derivative of `weight`."""
        return within(self._psi.deriv(), 2 * x / self.nodes) * (2 / self.nodes / self._area)

    def transformed(self, share: Floats) -> Floats:
        """Return the Fourier transform at wave numbers `share` times pi / spacing."""
        return within(self._psi, share / self.width)

    @cached_property
    def pieces(self) -> Floats:
        first = self.nodes // 2 - 1

        def powers(j: int) -> Floats:
            series = Chebyshev.interpolate(lambda t: self.weight(t + 0.5 + first - j), self.degree, domain=[-0.5, 0.5])
            coefficients = np.asarray(series.convert(kind=Polynomial, domain=[-1, 1]).coef, np.float64)
            return np.pad(coefficients, (0, self.degree + 1 - len(coefficients)))

        return np.array([powers(j) for j in range(self.nodes)])


@dataclass(frozen=True)
class Split:
    """Split of the potential; see docs/theory/mesh.md, eq. 1 to 4.

    c : bandwidth; cutoff : of the near part, A; kappa : inverse Debye length, 1/A
    """

    c: float
    cutoff: float
    kappa: float

    @property
    def largest_k(self) -> float:
        """Wave number beyond which the far part is 0, 1/A."""
        return self.c / self.cutoff

    @property
    def spacing(self) -> float:
        """Largest mesh spacing for these wave numbers, A."""
        return float(np.pi / self.largest_k)

    @cached_property
    def _nodes(self) -> tuple[Floats, Floats]:
        """Points in [0, 1] and weights of the quadrature."""
        t, weights = np.polynomial.legendre.leggauss(QUADRATURE)
        return (t + 1) / 2, weights / 2

    @cached_property
    def scale(self) -> float:
        """1 / psi(i kappa cutoff / c), from the Fourier integral of psi; makes the far part exact beyond the cutoff."""
        t, weights = self._nodes
        psi = prolate(self.c)(t)
        return float((weights * psi).sum() / (weights * psi * np.cosh(self.kappa * self.cutoff * t)).sum())

    def spectrum(self, share2: Floats) -> Floats:
        """Return the factor of the Green function. share2 : squared wave numbers relative to the largest, 0 to 1"""
        factor: Floats = prolate(self.c)(np.sqrt(share2)) * self.scale
        return factor

    @cached_property
    def _spectrum_steps(self) -> tuple[Floats, Floats]:
        """Table of the spectrum with its differences, fine enough for linear interpolation with an error below 1e-9."""
        values = self.spectrum(np.linspace(0, 1, SPECTRUM_STEPS + 1))
        return values, np.diff(values)

    def spectrum_of_many(self, share2: Floats) -> Floats:
        """Interpolate `spectrum` from a table, which is faster for millions of values."""
        values, steps = self._spectrum_steps
        place = share2 * SPECTRUM_STEPS
        before = np.minimum(place.astype(np.int32), SPECTRUM_STEPS - 1)
        factor: Floats = values[before] + (place - before) * steps[before]
        return factor

    def far(self, r: Floats) -> Floats:
        """Return the far part at distances r [A], 1/A."""
        t, weights = self._nodes
        k = t * self.largest_k
        density = weights * self.largest_k * self.spectrum(t * t) * k**2 / (k**2 + self.kappa**2)
        values: Floats = 2 / np.pi * (np.sinc(np.outer(r, k) / np.pi) @ density)
        return values

    @lru_cache(maxsize=16)  # noqa: B019  # splits are cached anyway
    def near_polynomials(self, degree: int) -> tuple[Floats, Floats]:
        """Return coefficients of A and B, lowest first, in s = 2 r^2/cutoff^2 - 1: the near part is A/r - B.

        degree : of B; the degree of A follows from the screening
        """

        def outer(share2: Floats) -> Floats:
            return np.cosh(self.kappa * self.cutoff * np.sqrt(share2))

        def inner(share2: Floats) -> Floats:
            r = self.cutoff * np.sqrt(share2)
            screened = self.kappa * np.sinc(1j * self.kappa * r / np.pi).real  # sinh(kappa r) / r
            values: Floats = self.far(r) + screened
            return values

        steep = 4 + int(2 * self.kappa * self.cutoff) if self.kappa else 0
        return _in_powers(outer, steep), _in_powers(inner, degree)


@dataclass(frozen=True)
class Middle:
    """Difference between the far parts of two splits, which ends at the longer cutoff; docs/theory/mesh.md, eq. 7."""

    near: Split
    far: Split

    @cached_property
    def _steps(self) -> tuple[Floats, Floats]:
        """Table of the spectrum with its differences, as fine as that of Split."""
        k = np.linspace(0, self.near.largest_k, SPECTRUM_STEPS + 1)
        shares = [np.minimum(k / split.largest_k, 1) for split in (self.near, self.far)]
        near, far = (
            np.where(share < 1, split.spectrum(share**2), 0.0)
            for split, share in zip((self.near, self.far), shares, strict=True)
        )
        with np.errstate(invalid="ignore"):
            values = 4 * np.pi * (near - far) / (k**2 + self.near.kappa**2)
        if not self.near.kappa:  # 0 / 0
            curvature = float(prolate(self.near.c).deriv(2)(0.0)) / 2
            values[0] = 4 * np.pi * curvature * (self.near.largest_k**-2 - self.far.largest_k**-2)
        return values, np.diff(values)

    def spectrum(self, k2: Floats) -> Floats:
        """Return the Fourier transform at squared wave numbers, A^2."""
        values, steps = self._steps
        place = np.sqrt(k2) * (SPECTRUM_STEPS / self.near.largest_k)
        before = np.minimum(place, SPECTRUM_STEPS - 1).astype(np.int32)
        spectrum: Floats = np.where(place < SPECTRUM_STEPS, values[before] + (place - before) * steps[before], 0.0)
        return spectrum


def _in_powers(function: Callable[[Floats], Floats], degree: int) -> Floats:
    """Return polynomial coefficients of a function on [0, 1], in the argument mapped to [-1, 1] for accuracy."""
    series = Chebyshev.interpolate(function, degree, domain=[0, 1])
    return np.asarray(series.convert(kind=Polynomial, domain=[0, 1], window=[-1, 1]).coef, np.float64)
