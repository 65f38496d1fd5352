"""Total and binding energies of poses, as PELE has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...energy import Energy, Term
from ..plan import Binding
from .cutoffs import FarGroups


@dataclass(frozen=True)
class PoseEnergies:
    """Energies of poses, kcal/mol; NaN where one failed.

    total : (m,) of the complex; binding : (m,); errors : why poses failed, by their place, from 0
    """

    total: Floats
    binding: Floats
    errors: Mapping[int, str]


class PoseEvaluator:
    """Evaluates poses of a complex.

    has_cutoffs : whether nonbonded energies end at PELE's long cutoffs
    of_explore : whether totals are those of pele-ocl's own explorers, which have no cutoffs, but restraints
    terms : these restraints
    """

    def __init__(
        self, binding: Binding, has_cutoffs: bool = True, *, of_explore: bool = False, terms: Sequence[Term] = ()
    ) -> None:
        self.binding, self._of_explore = binding, of_explore
        self._far = FarGroups(binding) if has_cutoffs else None
        self._restraints: Energy | None = None
        if terms:
            plan = binding.plans["complex"]
            names = [name for term in terms for name in term.names]
            self._restraints = Energy(
                binding.atoms, gradient=False, terms=terms, only_terms=names, precision=plan.precision,
                device=plan.device, model=binding.model.in_vacuum(),
            )  # fmt: skip

    def evaluate(self, conformations: NDArray[np.floating]) -> PoseEnergies:
        """Compute the energies at conformations (m, n, 3) A of all atoms that the plan was given."""
        positions = np.asarray(self.binding.parts.of_complex(np.asarray(conformations)), np.float64)
        batches = self.binding.systems.batches(positions, errors="record")
        energies = self.binding.systems.joined(batches)
        total, binding = energies.complex.total, energies.total
        if self._far is not None:
            radii = (self.binding.parts.born_radii(batches, of_parts) for of_parts in (False, True))
            whole, parts = self._far.energies(positions, *radii).T
            total, binding = total - (0.0 if self._of_explore else whole), binding - (whole - parts)
        if self._restraints is not None:
            total = total + self._restraints.evaluate_batch(positions, errors="record").terms.total
        return PoseEnergies(total, binding, energies.errors)
