"""Law by which a charge makes potential, as far as a user may choose it."""

from __future__ import annotations

from dataclasses import dataclass

from .common import arguments
from .common.errors import InputError

LARGEST = 1e6  # of kappa and the minimum distance
NEAREST = 1e-12  # A, of the cutoff, the inverse of whose square is a float32
FARTHEST = 1e12  # A, of the cutoff, whose square is a float32


# Names of laws, as titles of maps and bars of colours have them; the longer one first.
LAWS = ("screened Coulomb potential", "Coulomb potential")


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
                raise InputError("a potential is smoothed at its cutoff; choose the cutoff method")
        elif not arguments.is_finite(self.cutoff) or not max(self.min_distance, NEAREST) < self.cutoff <= FARTHEST:
            given = arguments.described(self.cutoff)
            raise InputError(f"the cutoff is {given} A; expected a finite number beyond the minimum distance")

    @property
    def name(self) -> str:
        """Law in words, one of LAWS."""
        return LAWS[0] if self.kappa else LAWS[1]
