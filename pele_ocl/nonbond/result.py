"""Results of `nonbond`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..atoms import Floats
from ..contract import HasFindings
from ..results import TermBatch, TermResult

TERMS = ("lennard_jones", "coulomb", "gb_pair")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NonbondResult(HasFindings, TermResult):
    """Nonbonded energy of n atoms over a pair list, and how it was computed.

    gradient : (n, 3) kcal/mol/A at fixed Born radii; None if not requested
    exact : False if the variant loses updates of the gradient to races (`naive`)
    seconds : "prepare", once per list; "total", including overhead and compilation; "kernel", of the kernels over
        pairs, if kernel times were requested

    >>> result = pele_ocl.nonbond("data/structures/trialanine.pdb", "all")
    >>> result.n_pairs, round(result.total, 1)
    (365, -27.0)
    """

    _room = "nonbond"

    n_pairs: int
    gradient: Floats | None
    exact: bool

    def __repr__(self) -> str:
        return self._about(f"{len(self.atoms):,} atoms, {self.n_pairs:,} pairs", f"total {self.total:.3f} kcal/mol")

    @property
    def net_force(self) -> float:
        """Length of the sum of all forces, kcal/mol/A; 0 except for rounding."""
        return 0.0 if self.gradient is None else float(np.linalg.norm(self.gradient.sum(axis=0)))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NonbondBatch(TermBatch[NonbondResult]):
    """Nonbonded energies of m conformations of n atoms; `batch[i]` is the NonbondResult of one.

    atoms : the molecule of the plan; positions : (m, n, 3) A as given, not copied
    gradients : (m, n, 3) kcal/mol/A, None if not requested
    exact : False if the variant loses updates of the gradients to races (`naive`)
    errors : reasons for failed conformations, by index from 0; their results are NaN

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Nonbond(atoms, pele_ocl.all_pairs(atoms), solvent="vacuum")
    >>> plan.evaluate_batch([atoms.positions] * 2).total.round(1).tolist()
    [-256.2, -256.2]
    """

    _room = "nonbond"
    _of_one = NonbondResult
    _each: ClassVar[Mapping[str, str]] = {"gradient": "gradients"}

    n_pairs: int
    gradients: Floats | None
    exact: bool
