"""Model for the electrostatic potential of point charges."""

from __future__ import annotations

from dataclasses import dataclass

from .common import arguments
from .common.errors import InputError

LARGEST = 1e6  # for kappa and the minimum distance
NEAREST = 1e-12  # A, smallest cutoff, so that its inverse square does not overflow in float32
FARTHEST = 1e12  # A, largest cutoff, so that its square does not overflow in float32


# Names of potentials in titles of maps and labels of colour bars, the longer one first.
LAWS = ("screened Coulomb potential", "Coulomb potential")


@dataclass(frozen=True)
class PotentialModel:
    """Potential of a point charge: docs/theory/potmap.md, eq. 1 to 6.

    dielectric : relative permittivity, 0.001 to 1e6; with `distance_dependent`, its increase per angstrom
    distance_dependent : use a permittivity of dielectric * r at distance r
    kappa : inverse Debye length of the salt, 1/A, >= 0; 0 means no screening
    min_distance : A, >= 0; closer points have the potential of this distance
    cutoff : A, > 0; charges farther away are ignored. None for all charges
    smooth : reduce the potential smoothly to 0 at the cutoff, by the factor (1 - r^2/cutoff^2)^2

    Raises InputError for values outside these bounds.
    """

    dielectric: float = 1.0
    distance_dependent: bool = False
    kappa: float = 0.0
    min_distance: float = 0.0
    cutoff: float | None = None
    smooth: bool = False

    def __post_init__(self) -> None:
        if not (arguments.is_finite(self.dielectric) and 1e-3 <= self.dielectric <= 1e6):
            given = arguments.described(self.dielectric)
            raise InputError(f"the dielectric is {given}; it must be positive, 0.001 to 1,000,000")
        for name in ("kappa", "min_distance"):
            arguments.number(name, getattr(self, name), "a finite number of at least 0", least=0)
            arguments.number(name, getattr(self, name), f"a number of at most {LARGEST:,.0f}", most=LARGEST)
        for name in ("distance_dependent", "smooth"):
            arguments.flag(name, getattr(self, name))
        if self.cutoff is None:
            if self.smooth:
                raise InputError("smoothing needs a cutoff; choose the cutoff method")
        elif not arguments.is_finite(self.cutoff) or not max(self.min_distance, NEAREST) < self.cutoff <= FARTHEST:
            given = arguments.described(self.cutoff)
            raise InputError(f"the cutoff is {given} A; expected a finite number beyond the minimum distance")

    @property
    def name(self) -> str:
        """Name of the potential, one of LAWS."""
        return LAWS[0] if self.kappa else LAWS[1]
