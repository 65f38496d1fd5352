"""Total and binding energies of poses, as PELE has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...results import Terms
from ..plan import Binding
from .cutoffs import Groups, long_range_energy


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

    has_cutoffs : whether Coulomb and GB energies end at PELE's long cutoffs
    """

    def __init__(self, binding: Binding, has_cutoffs: bool = True) -> None:
        self.binding, self.has_cutoffs = binding, has_cutoffs
        parts = binding.parts
        self._chosen = {"complex": np.arange(len(parts.complex)), "receptor": parts.receptor, "ligand": parts.ligand}
        self._groups = {name: Groups.of(plan.atoms) for name, plan in binding.plans.items()} if has_cutoffs else {}

    def evaluate(self, conformations: NDArray[np.floating]) -> PoseEnergies:
        """The energies at conformations (m, n, 3) A of all atoms that the plan was given."""
        positions = self.binding.of_complex(np.asarray(conformations, np.float64))
        totals, errors = dict[str, Floats](), dict[int, str]()
        for name, plan in self.binding.plans.items():
            own = positions[:, self._chosen[name]]
            batch = plan.evaluate_batch(own, errors="record")
            errors = {**{k: f"{name}: {why}" for k, why in batch.errors.items()}, **errors}
            totals[name] = _totals(batch.terms)
            for k in range(len(own)) if self.has_cutoffs else ():
                if k not in batch.errors:
                    totals[name][k] -= long_range_energy(plan, self._groups[name], own[k], batch.born_radii[k])
        binding = totals["complex"] - totals["receptor"] - totals["ligand"]
        return PoseEnergies(totals["complex"], binding, dict(sorted(errors.items())))


def _totals(terms: Terms) -> Floats:
    totals: Floats = np.array(terms.total, np.float64)
    return totals
