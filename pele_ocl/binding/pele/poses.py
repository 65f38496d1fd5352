"""Total and binding energies of poses, as PELE has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
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
    """

    def __init__(self, binding: Binding, has_cutoffs: bool = True) -> None:
        self.binding = binding
        self._far = FarGroups(binding) if has_cutoffs else None

    def evaluate(self, conformations: NDArray[np.floating]) -> PoseEnergies:
        """Compute the energies at conformations (m, n, 3) A of all atoms that the plan was given."""
        positions = np.asarray(self.binding.parts.of_complex(np.asarray(conformations)), np.float64)
        batches = self.binding.systems.batches(positions, errors="record")
        energies = self.binding.systems.joined(batches)
        total, binding = energies.complex.total, energies.total
        if self._far is not None:
            radii = (self.binding.parts.born_radii(batches, of_parts) for of_parts in (False, True))
            whole, parts = self._far.energies(positions, *radii).T
            total, binding = total - whole, binding - (whole - parts)
        return PoseEnergies(total, binding, energies.errors)
