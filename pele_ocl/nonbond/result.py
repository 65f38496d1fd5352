"""What `nonbond` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats


@dataclass(frozen=True, eq=False)
class NonbondResult:
    """Nonbonded energy of n atoms over a pair list, and how it was computed.

    lennard_jones, coulomb, gb_pair : kcal/mol
    gradient : (n, 3) kcal/mol/A with Born radii held fixed; None where it was not asked for
    exact : False where the variant loses updates of the gradient to races (`naive`)
    seconds : "prepare", what is done once for a list; "kernel", the evaluation; "total", with everything around,
        kernels to build for the first time included
    """

    atoms: Atoms
    n_pairs: int
    lennard_jones: float
    coulomb: float
    gb_pair: float
    gradient: Floats | None
    exact: bool
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        size = f"{len(self.atoms):,} atoms, {self.n_pairs:,} pairs"
        return f"NonbondResult({size}, total {self.total:.3f} kcal/mol, {self.variant}, {self.precision})"

    @property
    def total(self) -> float:
        """lennard_jones + coulomb + gb_pair, kcal/mol."""
        return self.lennard_jones + self.coulomb + self.gb_pair

    @property
    def energy(self) -> dict[str, float]:
        """The four energies by name, kcal/mol."""
        return {name: getattr(self, name) for name in ("lennard_jones", "coulomb", "gb_pair", "total")}

    @property
    def net_force(self) -> float:
        """Length of the sum of all forces, kcal/mol/A: 0 but for rounding."""
        return 0.0 if self.gradient is None else float(np.linalg.norm(self.gradient.sum(axis=0)))
