"""Nonbonded energies of frames, with a new pair list for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.variant import Progress
from ..pairs import PairList
from ..plan.plan import Plan
from ..results import Terms
from ..solvent import Solvent, choose_variant
from ..trajectories.files import Positions
from ..trajectories.streaming import N_PAIRS, Evaluate, FrameResults


def evaluate_with_fresh_lists(
    plan: Plan[Any, Any], list_of: Callable[[Atoms], PairList], over_pairs: Callable[[Atoms, PairList], Any],
    has_gb: bool,
) -> Evaluate[FrameResults]:  # fmt: skip
    """Return a function that evaluates each frame with a new pair list, with `n_pairs` as an additional column.

    plan : at the molecule's positions; list_of : makes the pair list of atoms
    over_pairs : makes the same plan for other positions and another list; has_gb : whether Born radii are needed

    Born radii of all frames of a piece are computed in one batch.
    """
    exact = choose_variant(plan.device.kind, len(plan.atoms))
    solvent = (
        Solvent(plan.atoms, variant=exact, precision=plan.precision, device=plan.device, model=plan.model)
        if has_gb
        else None
    )

    def evaluate(positions: Positions, progress: Progress | None) -> FrameResults:
        m, names = len(positions), plan.names
        values, n_pairs = np.full((m, len(names)), np.nan), np.zeros(m, np.int64)
        batch = None if solvent is None else solvent.evaluate_batch(positions, errors="record")
        errors = {} if batch is None else dict(batch.errors)
        for k, there in enumerate(positions):
            try:
                if k not in errors:
                    atoms = plan.atoms.moved(there)
                    pairs = list_of(atoms)
                    found = over_pairs(atoms, pairs).evaluate(born_radii=None if batch is None else batch.born_radii[k])
                    values[k], n_pairs[k] = found.terms.values, len(pairs)
            except InputError as error:
                errors[k] = str(error)
            if progress is not None:
                progress((k + 1) / m)
        return FrameResults({**Terms(names, values).columns(), N_PAIRS: n_pairs}, errors)

    return evaluate
