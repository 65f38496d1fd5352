"""Result of `place_ions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats
from ..grid import Grid, Map
from .species import Species


@dataclass(frozen=True, eq=False)
class IonsResult:
    """m ions in the order of placement, and how they were placed.

    species : of each ion, (m,)
    positions : (m, 3) A
    potentials : (m,) kcal/mol/e, at each ion, of the molecule and all ions before it
    free_volume : free for ions before the first, A^3
    map : the potential of the molecule and all ions, kcal/mol/e, to which no ion adds at its own point. None if it was
        not asked for
    variant : of the molecule's map; None where the map was given
    seconds : of the kernels, "map", the molecule's; "exclusion", of what is near its atoms; "ions", their placement;
        "total", with everything around
    """

    atoms: Atoms
    grid: Grid
    species: tuple[Species, ...]
    positions: Floats
    potentials: Floats
    free_volume: float
    map: Map | None
    device: str
    variant: str | None
    precision: str
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        named = ", ".join(f"{count} {name}" for name, count in self.counts.items()) or "no ions"
        return f"IonsResult({named}, energy {self.energy:.3f} kcal/mol, {self.precision})"

    def __len__(self) -> int:
        return len(self.species)

    @property
    def charges(self) -> Floats:
        """(m,) e."""
        return np.array([species.charge for species in self.species], np.float64)

    @property
    def energies(self) -> Floats:
        """(m,) kcal/mol, of each ion in the potential before it: q phi."""
        energies: Floats = self.charges * self.potentials
        return energies

    @property
    def energy(self) -> float:
        """Energy of all ions with the molecule and each other, kcal/mol."""
        return float(self.energies.sum())

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of ions of each species, in the order in which they first come."""
        names = [species.name for species in self.species]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    @property
    def net_charge(self) -> float:
        """Charge of the molecule and its ions, e."""
        return float(self.atoms.charges.sum() + self.charges.sum())
