"""What `solvent` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from ..atoms import Atoms, Floats, Ints
from ..errors import InputError
from ..solvent_model import SolventModel


@dataclass(frozen=True, eq=False)
class EnergyTerms:
    """The terms of the implicit-solvent energy, one value an atom or a residue, kcal/mol."""

    gb_self: Floats
    gb_pair: Floats
    nonpolar: Floats

    @property
    def total(self) -> Floats:
        return self.gb_self + self.gb_pair + self.nonpolar

    def summed(self, starts: Ints) -> EnergyTerms:
        """The same by segments of the arrays that begin at `starts`."""
        return EnergyTerms(*(np.add.reduceat(getattr(self, f.name), starts) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class SolventResult:
    """Born radii and implicit-solvent energy of n atoms, and how they were computed.

    born_radii : (n,) A
    psi : (n,) the argument of the tanh polynomial, dimensionless
    per_atom : EnergyTerms of (n,) arrays; the energy of a pair is shared equally by its atoms
    seconds : "born" and "energy", the kernels of the two steps; "kernel", their sum; "total", with everything around
    """

    atoms: Atoms
    model: SolventModel
    born_radii: Floats
    psi: Floats
    per_atom: EnergyTerms
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]

    def __repr__(self) -> str:
        energy = f"total {self.total:.3f} kcal/mol"
        return f"SolventResult({len(self.atoms):,} atoms, {energy}, {self.variant}, {self.precision})"

    @property
    def gb_self(self) -> float:
        """Sum of the atoms' self energies, kcal/mol."""
        return float(self.per_atom.gb_self.sum())

    @property
    def gb_pair(self) -> float:
        """GB energy of all pairs, kcal/mol."""
        return float(self.per_atom.gb_pair.sum())

    @property
    def nonpolar(self) -> float:
        """ACE surface energy, kcal/mol."""
        return float(self.per_atom.nonpolar.sum())

    @property
    def total(self) -> float:
        """gb_self + gb_pair + nonpolar, kcal/mol."""
        return self.gb_self + self.gb_pair + self.nonpolar

    @property
    def energy(self) -> dict[str, float]:
        """The four energies by name, kcal/mol."""
        return {name: getattr(self, name) for name in ("gb_self", "gb_pair", "nonpolar", "total")}

    def per_residue(self) -> EnergyTerms:
        """The energies summed by residue, (n_residues,) arrays. Raises InputError where the atoms have no labels."""
        if self.atoms.labels is None:
            raise InputError("energies per residue need atoms with labels; these have none")
        return self.per_atom.summed(self.atoms.labels.residue_starts)
