"""Rounds of minimization that release residues with violations, as in AlphaFold's relaxation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..contract import Finding, of_energy, of_structure
from ..energy.terms import PositionalRestraint
from ..minimize import Minimizer
from ..minimize.minimizer import Watch
from ..opencl.device import get_device
from .presets import VACUUM, Protocol
from .result import RelaxResult, Round
from .topologies import Model
from .violations import Violation, Violations

if TYPE_CHECKING:
    from ..opencl.device import Device

CONSTRAINTS = "hbonds"


@dataclass(frozen=True)
class Rounds:
    """Runs the rounds of a protocol for a model. precision, device : as in `minimize`"""

    protocol: Protocol
    precision: str = "float32"
    device: Device | int | str | None = None

    def relaxed(self, model: Model, name: str, prepared: float, watch: Watch | None = None) -> RelaxResult:
        """Relax a model. prepared : time of its preparation, s; watch : as in `Minimizer.minimize_batch`

        Raises InputError if it cannot be minimized.
        """
        begin = time.perf_counter()
        rule, atoms = model.rule, model.atoms
        before = rule.find(atoms.positions)
        searching = time.perf_counter() - begin
        rounds: list[Round] = []
        freed: NDArray[np.intp] = np.empty(0, np.intp)
        left, most = self.protocol.iterations_in_all, self.protocol.rounds
        while not rounds or (left and len(rounds) < most and _wants_more(rule, rounds[-1].after, freed)):
            if rounds:
                freed = np.union1d(freed, rule.residues(rounds[-1].after))
            minimizer = self._minimizer(atoms, freed, left)
            result = minimizer.minimize_batch(atoms.positions[np.newaxis], watch=watch)[0]
            atoms, left = result.atoms, left - result.iterations
            start = time.perf_counter()
            rounds.append(Round(result, _names(atoms, freed), rule.find(atoms.positions)))
            searching += time.perf_counter() - start
        at_end = {term: float(value) for term, value in result.energy_after.columns().items()}
        total = time.perf_counter() - begin
        seconds = {"preparation": prepared, "minimization": total - searching, "violations": searching}
        return RelaxResult(
            name=name, atoms=atoms, b_factors=model.b_factors, before=before, rounds=rounds,
            n_added=int((~model.given).sum()), rms_displacement=_moved(model, atoms.positions),
            seconds={**seconds, "total": prepared + total}, notes=model.notes,
            findings=(*_findings(model), *of_energy(atoms, at_end, atoms.positions)), sha256=model.source.sha256,
            protocol=self.protocol, precision=self.precision, device=str(get_device(self.device)),
        )  # fmt: skip

    def _minimizer(self, atoms: Atoms, freed: NDArray[np.intp], left: int) -> Minimizer:
        """Build a minimizer that restrains heavy atoms except in freed residues. left : remaining iterations"""
        held = is_heavy(atoms) & ~np.isin(_residues(atoms), freed)
        restraint = PositionalRestraint(self.protocol.force_constant, atoms=held)
        return Minimizer(
            atoms, tolerance=self.protocol.rms_gradient, max_iterations=min(self.protocol.max_iterations, left),
            terms=[restraint], constraints=CONSTRAINTS, precision=self.precision, device=self.device, model=VACUUM,
        )  # fmt: skip


def _wants_more(rule: Violations, after: Sequence[Violation], freed: NDArray[np.intp]) -> bool:
    """Return whether any violation counts, or affects a residue that was not freed yet."""
    return any(violation.counts for violation in after) or bool(np.setdiff1d(rule.residues(after), freed).size)


def is_heavy(atoms: Atoms) -> NDArray[np.bool_]:
    """Return a mask (n,) of the heavy atoms."""
    assert atoms.labels is not None
    return np.asarray(atoms.labels.elements != "H")


def _residues(atoms: Atoms) -> NDArray[np.intp]:
    """Return the residue index of each atom, (n,)."""
    assert atoms.labels is not None
    starts = atoms.labels.residue_starts
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(atoms)))


def _names(atoms: Atoms, residues: NDArray[np.intp]) -> tuple[str, ...]:
    assert atoms.labels is not None
    return tuple(str(atoms.labels.residues[k]) for k in residues.tolist())


def _findings(model: Model) -> list[Finding]:
    """Return the findings about the atoms of the file, as notes, since relaxation may resolve them."""
    given = np.flatnonzero(model.given)
    found = of_structure(model.atoms[given], "noted", places_sites=True)
    return [replace(finding, atoms=tuple(given[list(finding.atoms)].tolist())) for finding in found]


def _moved(model: Model, positions: Floats) -> float:
    away = (positions - model.atoms.positions)[is_heavy(model.atoms) & model.given]
    return float(np.sqrt((away**2).sum(axis=1).mean()))
