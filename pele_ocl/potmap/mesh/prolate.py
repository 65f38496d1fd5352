"""Prolate spheroidal wave function of order 0, which is as concentrated in space and in frequency as can be."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import Legendre

from ...atoms import Floats


@cache
def prolate(c: float) -> Legendre:
    """psi_c on [-1, 1] with psi_c(0) = 1, as a Legendre series.

    c : bandwidth; outside [-1, 1] psi_c is taken as 0, and its Fourier transform is psi_c again, stretched by c

    It is an eigenvector of the tridiagonal matrix over even degrees, of the least eigenvalue (Xiao, Rokhlin and Yarvin,
    Inverse Problems 17, 805 (2001), eq. 67).
    """
    k = np.arange(0.0, 2 * int(c) + 60, 2)
    diagonal = k * (k + 1) + (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)) * c * c
    beside = ((k + 2) * (k + 1) / ((2 * k + 3) * np.sqrt((2 * k + 1) * (2 * k + 5))) * c * c)[:-1]
    vector = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))[1][:, 0]
    series = np.zeros(2 * len(k) - 1)
    series[::2] = vector * np.sqrt(k + 0.5)
    return Legendre(series / Legendre(series)(0.0))


def within(function: Legendre, x: Floats) -> Floats:
    """A function on [-1, 1] at x, 0 beyond."""
    values: Floats = np.where(np.abs(x) <= 1, function(np.clip(x, -1, 1)), 0.0)
    return values
