"""Energies of one model, of all models of a file, and of the frames of a trajectory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...atoms import Atoms
from ...nonbond import Nonbond, NonbondResult
from ...pairs import Pairs
from ...solvent import Solvent, choose_variant
from ...trajectories.listing import listing_anew
from ..frames import FrameWork
from ..molecule import Molecule
from ..progress import ProgressLine


@dataclass(frozen=True, eq=False)
class Computed:
    """The results of all models, the pair list of the last one, and the seconds of each step."""

    results: Sequence[NonbondResult]
    pairs: Pairs
    seconds: Mapping[str, float]

    @property
    def energies(self) -> list[dict[str, float]]:
        """The terms and the total of each model."""
        return [result.energy for result in self.results]


def computed_together(
    molecule: Molecule, list_of: Callable[[Atoms], Pairs], plan_of: Callable[..., Nonbond], progress: ProgressLine
) -> Computed:
    """The one model, or all models over one list."""
    start = time.perf_counter()
    pairs = list_of(molecule.atoms)
    seconds = {"pairs": time.perf_counter() - start}
    plan = plan_of(molecule.atoms, pairs)
    results = (
        [plan.evaluate(profile=True, progress=progress)]
        if molecule.conformations is None
        else list(plan.evaluate_batch(molecule.conformations, progress, profile=True))
    )
    return Computed(results, pairs, seconds | dict(results[0].seconds))


def computed_one_by_one(
    molecule: Molecule, list_of: Callable[[Atoms], Pairs], plan_of: Callable[..., Nonbond], progress: ProgressLine
) -> Computed:
    """Each model over the pairs within reach in itself; the Born radii of all come from one batch."""
    assert molecule.conformations is not None
    results: list[NonbondResult] = []
    seconds: dict[str, float] = {}
    radii = None
    for k, model in enumerate(molecule.models()):
        start = time.perf_counter()
        pairs = list_of(model)
        taken = time.perf_counter() - start
        plan = plan_of(model, pairs)
        if plan.gb and radii is None:
            exact = choose_variant(plan.device.kind, len(plan.atoms))
            solvent = Solvent(
                molecule.atoms, variant=exact, precision=plan.precision, device=plan.device, model=plan.model
            )
            radii = solvent.evaluate_batch(molecule.conformations).born_radii
        results.append(plan.evaluate(born_radii=None if radii is None else radii[k], profile=True))
        for name, value in {"pairs": taken, **results[-1].seconds}.items():
            seconds[name] = seconds.get(name, 0.0) + value
        progress((k + 1) / len(molecule.numbers))
    return Computed(results, pairs, seconds)


def frame_work(
    molecule: Molecule, list_of: Callable[[Atoms], Pairs], listed: Pairs | None, plan_of: Callable[..., Nonbond],
    no_cutoff: bool,
) -> FrameWork:  # fmt: skip
    """The work on frames: over one list for all of them, or over the pairs within reach in each."""
    plan = plan_of(molecule.atoms, list_of(molecule.atoms) if listed is None else listed)
    if listed is not None or no_cutoff:
        of = {"pairs": "of a file" if listed is not None else "all"}
        return FrameWork("Nonbonded", molecule.source, plan, of, chosen=molecule.chosen)
    words = list_of.keywords if isinstance(list_of, partial) else {}
    return FrameWork("Nonbonded", molecule.source, plan, words, listing_anew(plan, list_of, plan_of), molecule.chosen)
