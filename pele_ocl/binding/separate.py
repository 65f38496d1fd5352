"""Binding energies from separate trajectories of complex, receptor and ligand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import hypot
from typing import TYPE_CHECKING

from ..atoms import Atoms, Floats, correspondence
from ..common.errors import InputError
from ..common.variant import Progress
from ..energy import Energy
from ..results import Terms
from ..trajectories import FrameEnergies, Trajectory
from ..trajectories.energies import frame_energies, frame_results, workers_of
from ..trajectories.files import Positions
from ..trajectories.reading import opened
from ..trajectories.streaming import FrameResults
from .energies import DELTA, PARTS, aligned
from .poisson_boltzmann import plan_in
from .statistics import Spread, spread_of
from .systems import precise_batch

if TYPE_CHECKING:
    from .plan import Binding


@dataclass(frozen=True, eq=False)
class SeparateEnergies:
    """Energies of complex, receptor and ligand over separate trajectories; no terms cancel.

    systems : FrameEnergies for "complex", "receptor" and "ligand"; terms that a part lacks are 0
    """

    systems: Mapping[str, FrameEnergies]

    def statistics(self, of: Callable[[Terms], Mapping[str, Floats]] = Terms.columns) -> dict[str, dict[str, Spread]]:
        """Return the Spread of each term and of the "total", by system; failed frames are ignored.

        For "delta", the mean is the difference of the means, and errors and deviations are added in quadrature.

        of : function that converts Terms to the energies to average, such as `amber_terms`

        Raises InputError if no frame of a system has energies.
        """
        found = {
            name: {term: spread_of(values) for term, values in of(energies.terms).items()}
            for name, energies in self.systems.items()
        }
        found[DELTA] = {term: _difference([found[name][term] for name in PARTS]) for term in found["complex"]}
        return found


def separate_energies(
    binding: Binding, trajectories: Mapping[str, Trajectory], atoms: Mapping[str, Atoms] | None = None,
    progress: Progress | None = None,
) -> SeparateEnergies:  # fmt: skip
    """Compute the energies over separate trajectories of "complex", "receptor" and "ligand".

    trajectories : trajectories with the atoms of binding.plans, or of `atoms`
    atoms : atoms of parts with their own topology, by name; by default those of the complex

    Raises InputError if a trajectory is missing or has other atoms, if the atoms of a part do not match the complex by
    name, and if a part has terms that the complex lacks.
    """
    missing = [name for name in PARTS if name not in trajectories]
    if missing:
        raise InputError(f"a trajectory of the {missing[0]} is missing; give one of each")
    found = dict[str, FrameEnergies]()
    for k, name in enumerate(PARTS):
        own, whole = (atoms or {}).get(name), binding.plans[name].atoms
        if own is not None:
            n_atoms = len(whole), len(own)
            correspondence(whole.labels, own.labels, f"the {name}'s structure", "the complex", n_atoms)
        plan = binding.plans[name] if own is None else plan_like(binding, own)
        if strange := set(plan.names) - set(binding.names):
            raise InputError(f"the {name} has the term {sorted(strange)[0]}, which the complex does not have")
        tell = None if progress is None else lambda share, done=k: progress((done + share) / len(PARTS))
        over = opened(plan.atoms, trajectories[name], None, None, None)
        energies = _energies(binding, plan, over, tell)
        terms = Terms(binding.names, aligned(energies.terms, binding.names))
        found[name] = FrameEnergies(
            energies.frames, terms, energies.errors, n_imaged=energies.n_imaged, notes=energies.notes
        )
    return SeparateEnergies(found)


def _energies(binding: Binding, plan: Energy, trajectory: Trajectory, progress: Progress | None) -> FrameEnergies:
    """Compute the energies of one system's frames, in float64 where float32 is not precise enough for differences."""

    @cache
    def in_float64() -> Energy:
        return plan_like(binding, plan.atoms, "float64")

    def evaluate(positions: Positions, inner: Progress | None) -> FrameResults:
        return frame_results(plan, precise_batch(plan, positions, inner, in_float64))

    return frame_energies(trajectory, evaluate, workers_of(plan), progress=progress)


def plan_like(binding: Binding, atoms: Atoms, precision: str | None = None) -> Energy:
    """Build the plan of other atoms with the options of a Binding. precision : by default that of the Binding"""
    options = binding.options
    return plan_in(
        binding.pb, atoms, binding.model, one_four=options.one_four, cutoff=options.cutoff,
        precision=precision or binding.precision, device=binding.device,
    )  # fmt: skip


def _difference(parts: list[Spread]) -> Spread:
    """Return the Spread of the complex minus those of the parts."""
    whole, *others = parts
    errors = {name: hypot(*(getattr(of, name) for of in parts)) for name in ("sd", "sd_sample", "sem", "sem_blocked")}
    return Spread(
        n=min(of.n for of in parts), mean=whole.mean - sum(of.mean for of in others),
        inefficiency=max(of.inefficiency for of in parts), **errors,
    )  # fmt: skip
