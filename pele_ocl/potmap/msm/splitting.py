"""1/r as a near part, which ends at the cutoff, and an ever smoother part for each lattice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial

from ...atoms import Floats


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
