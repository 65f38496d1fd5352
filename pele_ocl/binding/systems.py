"""Plans of complex, receptor and ligand, evaluated at the same positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.variant import Progress
from ..energy import Energy, EnergyBatch
from ..energy.plan import share_programs
from ..gb_models.solvent_model import SolventModel
from ..grid import Grid
from ..results import Terms
from ..trajectories.files import Positions
from .energies import PARTS, TOO_LARGE, BindingEnergies, aligned, is_large, needs_float64
from .parts import Parts, run_of
from .poisson_boltzmann import PBEnergy, PBSolvent, evaluate_together, plan_in


class Systems:
    """Plans of complex, receptor and ligand.

    plans : Energy of each by name
    names : names of the complex's terms
    """

    def __init__(
        self, atoms: Atoms, parts: Parts, pb: PBSolvent | None, model: SolventModel, choices: Mapping[str, Any]
    ) -> None:
        """Build the plans. atoms : atoms of the complex; choices : options of Energy, for all plans"""
        self._atoms, self._parts, self._pb, self._model, self._choices = atoms, parts, pb, model, choices
        of_parts = {"complex": atoms, "receptor": atoms[parts.receptor], "ligand": atoms[parts.ligand]}
        self.plans: dict[str, Energy] = {name: plan_in(pb, of, model, **choices) for name, of in of_parts.items()}
        whole = self.plans["complex"]
        for name in ("receptor", "ligand"):
            share_programs(self.plans[name], whole)
        self.names, self._device, self._precision = whole.names, whole.device, whole.precision
        self._in_float64: Systems | None = None  # built for the first conformation that needs it

    def _again(self, **choices: object) -> Systems:
        """Build the same systems with other options."""
        return Systems(self._atoms, self._parts, self._pb, self._model, {**self._choices, **choices})

    def batches(
        self, positions: Positions, progress: Progress | None = None, errors: Literal["raise", "record"] = "raise"
    ) -> dict[str, EnergyBatch]:
        """Evaluate all plans at positions (m, k, 3) of the complex."""
        chosen = self.positions(positions)
        in_pb = {name: plan for name, plan in self.plans.items() if isinstance(plan, PBEnergy)}
        if in_pb:
            found = evaluate_together(in_pb, chosen, progress, errors=errors, grids=self.grids(chosen))
            return self.precise(found, positions, errors)

        def batch(name: str) -> EnergyBatch:
            return self.plans[name].evaluate_batch(chosen[name], progress if name == PARTS[0] else None, errors=errors)

        if self._device.kind == "CPU":
            found = {name: batch(name) for name in PARTS}
        else:
            with ThreadPoolExecutor(len(PARTS)) as pool:  # keeps a GPU busy while the host prepares and finishes
                found = dict(zip(PARTS, pool.map(batch, PARTS), strict=True))
        return self.precise(found, positions, errors)

    def positions(self, positions: Positions) -> dict[str, Positions]:
        """Return the positions (m, n, 3) of each part from those of the complex (m, k, 3)."""
        return {
            "complex": positions,
            "receptor": positions[:, run_of(self._parts.receptor)],
            "ligand": positions[:, run_of(self._parts.ligand)],
        }

    def grids(self, chosen: Mapping[str, Positions]) -> dict[str, list[Grid]]:
        """Return the Poisson-Boltzmann grids: those of the complex, and for parts the same nodes or a section of them.

        chosen : conformations (m, n, 3) A of "complex", "receptor" and "ligand"
        """
        plans = {name: plan for name, plan in self.plans.items() if isinstance(plan, PBEnergy)}
        around = plans["complex"].grids(chosen["complex"])
        parts = {name: plan.grids(chosen[name], around) for name, plan in plans.items() if name != "complex"}
        return {"complex": around, **parts}

    def precise(
        self, batches: Mapping[str, EnergyBatch], positions: Positions, errors: Literal["raise", "record"] = "raise"
    ) -> dict[str, EnergyBatch]:
        """Return the batches, recomputed in float64 where energies are too large for differences in float32.

        This happens for overlapping atoms. If the device does not support float64, these conformations fail.

        positions : (m, k, 3) A of the complex

        Raises InputError if a conformation fails and `errors` is "raise".
        """
        if self._precision == "float64":
            return dict(batches)
        whole = np.asarray(positions, np.float64)  # close atoms of the parts are also close in the complex
        large = needs_float64(batches["complex"].terms, self._atoms, whole)
        large = np.logical_or.reduce([large, *(is_large(batch.terms) for batch in batches.values())])
        for batch in batches.values():
            large[list(batch.errors)] = False
        places = np.flatnonzero(large)
        if not len(places):
            return dict(batches)
        if not self._device.has_float64:
            if errors == "raise":
                raise InputError(f"conformation {places[0] + 1} of {len(large)}: {TOO_LARGE}")
            return {name: _failed(batch, places.tolist(), TOO_LARGE) for name, batch in batches.items()}
        if self._in_float64 is None:
            self._in_float64 = self._again(precision="float64", variant="auto")
        again = self._in_float64.batches(positions[places].astype(np.float64), errors="record")
        failed = {k: why for batch in again.values() for k, why in batch.errors.items()}
        if failed and errors == "raise":
            k = min(failed)
            raise InputError(f"conformation {places[k] + 1} of {len(large)}: {failed[k]}")
        return {name: with_rows(batch, places, again[name]) for name, batch in batches.items()}

    def joined(self, batches: Mapping[str, EnergyBatch]) -> BindingEnergies:
        """Combine the batches of all systems, and compute the difference."""
        failed = {k: f"{name}: {why}" for name in reversed(PARTS) for k, why in batches[name].errors.items()}
        systems = {name: aligned(batch.terms, self.names).copy() for name, batch in batches.items()}
        for values in systems.values():
            values[list(failed)] = np.nan
        delta = systems["complex"] - systems["receptor"] - systems["ligand"]
        terms = {name: Terms._unchecked(self.names, values) for name, values in (*systems.items(), ("delta", delta))}
        return BindingEnergies.of(terms, errors=dict(sorted(failed.items())))


def precise_batch(
    plan: Energy, positions: Positions, progress: Progress | None, in_float64: Callable[[], Energy]
) -> EnergyBatch:
    """Evaluate positions (m, n, 3) of a single system, recomputed in float64 as in `Systems.precise`.

    in_float64 : builds the plan in float64; called only if a conformation needs it
    """
    batch = plan.evaluate_batch(positions, progress, errors="record")
    if plan.precision == "float64":
        return batch
    large = needs_float64(batch.terms, plan.atoms, np.asarray(positions, np.float64))
    large[list(batch.errors)] = False
    places = np.flatnonzero(large)
    if not len(places):
        return batch
    if not plan.device.has_float64:
        return _failed(batch, places.tolist(), TOO_LARGE)
    again = in_float64().evaluate_batch(positions[places].astype(np.float64), errors="record")
    return with_rows(batch, places, again)


def _failed(batch: EnergyBatch, places: list[int], reason: str) -> EnergyBatch:
    """Mark conformations of a batch as failed."""
    values = batch.terms.values.copy()
    values[places] = np.nan
    errors = dict(sorted({**batch.errors, **dict.fromkeys(places, reason)}.items()))
    return replace(batch, terms=Terms(batch.terms.names, values), errors=errors)


def with_rows(batch: EnergyBatch, places: NDArray[np.intp], others: EnergyBatch) -> EnergyBatch:
    """Replace the conformations at `places` of a batch by those of another batch."""
    terms, radii = batch.terms.values.copy(), batch.born_radii.copy()
    terms[places], radii[places] = others.terms.values, others.born_radii
    per_atom = batch.per_atom
    if per_atom is not None and others.per_atom is not None:
        of_atoms = per_atom.values.copy()
        of_atoms[places] = others.per_atom.values
        per_atom = Terms(per_atom.names, of_atoms)
    errors = {**batch.errors, **{int(places[k]): why for k, why in others.errors.items()}}
    found = Terms(batch.terms.names, terms)
    return replace(batch, terms=found, born_radii=radii, per_atom=per_atom, errors=dict(sorted(errors.items())))
