"""What `energy` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats
from ..errors import InputError
from ..solvent_model import SolventModel

TERMS = ("lennard_jones", "coulomb", "gb_pair", "gb_self", "nonpolar")


@dataclass(frozen=True, eq=False)
class EnergyResult:
    """Energy of one conformation of n atoms, and how it was computed.

    energies : (5,) kcal/mol, the TERMS
    gradient : (n, 3) kcal/mol/A; None where it was not asked for
    born_radii : (n,) A
    per_atom : (n, 5) kcal/mol, the TERMS of each atom, a pair shared equally by its two; None where not asked for
    seconds : "total", with everything around, kernels to build for the first time included; where times of kernels
        were asked for also "kernel", from the first one's start to the last one's end, chunk by chunk
    """

    atoms: Atoms
    model: SolventModel
    energies: Floats
    gradient: Floats | None
    born_radii: Floats
    per_atom: Floats | None
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        size = f"{len(self.atoms):,} atoms"
        return f"EnergyResult({size}, total {self.total:.3f} kcal/mol, {self.variant}, {self.precision})"

    @property
    def lennard_jones(self) -> float:
        """Lennard-Jones energy, kcal/mol."""
        return float(self.energies[0])

    @property
    def coulomb(self) -> float:
        """Coulomb energy in the solute, kcal/mol."""
        return float(self.energies[1])

    @property
    def gb_pair(self) -> float:
        """GB energy of all pairs, kcal/mol."""
        return float(self.energies[2])

    @property
    def gb_self(self) -> float:
        """GB energy of the atoms themselves, kcal/mol."""
        return float(self.energies[3])

    @property
    def nonpolar(self) -> float:
        """ACE surface energy, kcal/mol."""
        return float(self.energies[4])

    @property
    def total(self) -> float:
        """Sum of the five, kcal/mol."""
        return float(self.energies.sum())

    @property
    def energy(self) -> dict[str, float]:
        """The energies by name, kcal/mol."""
        return {**dict(zip(TERMS, self.energies.tolist(), strict=True)), "total": self.total}

    def per_residue(self) -> Floats:
        """The TERMS summed by residue, (n_residues, 5) kcal/mol.

        Raises InputError where the atoms have no labels or energies by atom were not asked for.
        """
        if self.atoms.labels is None:
            raise InputError("energies per residue need atoms with labels; these have none")
        if self.per_atom is None:
            raise InputError("energies per residue need those of atoms; ask for them with per_atom=True")
        by_residue: Floats = np.add.reduceat(self.per_atom, self.atoms.labels.residue_starts, axis=0)
        return by_residue


@dataclass(frozen=True, eq=False)
class EnergyBatch:
    """Energies of m conformations of n atoms.

    energies : (m, 5) the TERMS, kcal/mol; gradients : (m, n, 3) kcal/mol/A, None where not asked for
    born_radii : (m, n) A; per_atom : (m, n, 5) kcal/mol, None where not asked for
    all others : as in EnergyResult
    """

    atoms: Atoms
    model: SolventModel
    energies: Floats
    gradients: Floats | None
    born_radii: Floats
    per_atom: Floats | None
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]

    def __len__(self) -> int:
        return len(self.energies)

    def __repr__(self) -> str:
        size = f"{len(self):,} conformations of {len(self.atoms):,} atoms"
        totals = f"total {self.total.min():.3f} to {self.total.max():.3f} kcal/mol"
        return f"EnergyBatch({size}, {totals}, {self.variant}, {self.precision})"

    @property
    def total(self) -> Floats:
        """Sum of all terms of each conformation, (m,) kcal/mol."""
        total: Floats = self.energies.sum(axis=1)
        return total
