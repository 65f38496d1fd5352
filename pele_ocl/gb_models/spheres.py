"""Spheres of a molecule's atoms as a GB model has them."""

from __future__ import annotations

from dataclasses import dataclass

from ..atoms import Floats
from .necks import Necks


@dataclass(frozen=True, eq=False)
class Spheres:
    """Radii of n atoms and what else a GB model has of each.

    radii, rho : (n,) A, intrinsic and offset radii
    scaled : (n,) A, radii with which the atoms descreen others; below 0 where a model lets them screen
    constants : (n, 4) alpha, beta, gamma and the offset (A) of each atom's radius function; None where all have one
    necks : of pairs; None where the model has none
    """

    radii: Floats
    rho: Floats
    scaled: Floats
    constants: Floats | None = None
    necks: Necks | None = None
