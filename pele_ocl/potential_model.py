"""The law by which a charge makes potential, as far as a user may choose it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import InputError


@dataclass(frozen=True)
class PotentialModel:
    """Potential of a point charge: docs/theory/potmap.md, eq. 1 to 6.

    dielectric : relative permittivity, 0.001 to 1e6; with `distance_dependent` its growth per Angstrom
    distance_dependent : the permittivity at distance r is dielectric * r
    kappa : inverse Debye length of the salt, 1/A, >= 0; 0 means no screening
    min_distance : A, >= 0; closer points get the potential of this distance
    cutoff : A, > 0; charges beyond it do not count. None for all charges
    smooth : at the cutoff the potential goes to 0 without a step, by the factor (1 - r^2/cutoff^2)^2

    Raises InputError for values outside these bounds.
    """

    dielectric: float = 1.0
    distance_dependent: bool = False
    kappa: float = 0.0
    min_distance: float = 0.0
    cutoff: float | None = None
    smooth: bool = False

    def __post_init__(self) -> None:
        if not 1e-3 <= self.dielectric <= 1e6:
            raise InputError(f"the dielectric is {self.dielectric:g}; it must be positive, 0.001 to 1,000,000")
        for name in ("kappa", "min_distance"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise InputError(f"{name} is {value:g}; a finite number of at least 0 is needed")
        if self.cutoff is None:
            if self.smooth:
                raise InputError("a potential is smoothed at its cutoff; choose the cutoff method")
        elif not math.isfinite(self.cutoff) or self.cutoff <= self.min_distance:
            raise InputError(f"the cutoff is {self.cutoff:g} A; a finite number beyond the minimum distance is needed")
