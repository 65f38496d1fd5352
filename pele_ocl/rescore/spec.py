"""Job that computes the poses of a PELE run, with one walker per item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Floats
from ..binding import Binding
from ..binding.pele import PoseEnergies, PoseEvaluator
from ..common.errors import InputError
from ..common.inputfile import read_file
from ..common.notes import note
from ..explore.control import read_simulation
from ..explore.control.building import constraint_terms
from ..explore.reports import BINDING, TOTAL, Report, read_report
from ..formats import model_numbers
from ..gb_models.solvent_model import SolventModel
from ..jobs import Record, Spec
from ..reading import Chosen, Reading
from ..trajectories import Trajectory
from ..trajectories.fingerprints import fingerprint
from .files import Walker

ENERGIES = ("total", "binding", "pele_total", "pele_binding")


@dataclass(frozen=True, eq=False)
class WalkerPoses:
    """Poses of one walker.

    name : name of its report; columns : ENERGIES -> (m,) kcal/mol, NaN for missing values
    errors : error messages of failed poses, by index; error : error message if the walker failed, otherwise ""
    """

    name: str
    columns: Mapping[str, Floats] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    error: str = ""

    def __len__(self) -> int:
        return len(self.columns[ENERGIES[0]]) if self.columns else 0

    def as_json(self) -> dict[str, Any]:
        """Return the result of a record as JSON data, with null for missing values."""
        columns = {
            name: [None if value != value else value for value in values.tolist()]
            for name, values in self.columns.items()
        }
        return {"columns": columns, "errors": {str(k): why for k, why in self.errors.items()}}

    @classmethod
    def of(cls, record: Record) -> WalkerPoses:
        """Read the poses from a record, without loss of precision."""
        if record.failed:
            return cls(record.structure, error=record.error)
        columns = {name: np.array(values, np.float64) for name, values in record["columns"].items()}
        return cls(record.structure, columns, {int(k): why for k, why in record["errors"].items()})


@dataclass(frozen=True, eq=False)
class PosesSpec(Spec[Walker]):
    """Energies of a PELE run's poses, walker by walker.

    path : path of the structure; reading : how it is read; ligand : a selection
    group_cutoffs : True with PELE's long nonbonded cutoffs
    own : control file of an `explore` run, whose totals include restraints and have no cutoffs; None for PELE runs
    """

    path: Path
    reading: Reading
    ligand: str
    model: SolventModel
    precision: str
    device: Any
    group_cutoffs: bool
    own: Path | None = None

    @cached_property
    def _read(self) -> Chosen:
        source = read_file(self.path)
        numbers = model_numbers(source) if source.suffix == ".pdb" else []
        return self.reading.chosen(source, numbers[0] if numbers else None)

    @cached_property
    def evaluator(self) -> PoseEvaluator:
        """Evaluator of poses, built once per process."""
        atoms = self._read[0]
        rest = ~atoms.selected(self.ligand)  # as in PELE, including water
        plan = Binding(
            atoms, self.ligand, rest, model=self.model, precision=self.precision, device=self.device
        )  # fmt: skip
        if self.own is None:
            return PoseEvaluator(plan, self.group_cutoffs)
        task = read_simulation(self.own).tasks[0]
        terms = constraint_terms(self.own, task.constraints, plan.atoms)
        return PoseEvaluator(plan, self.group_cutoffs, of_explore=True, terms=terms)

    def facts(self) -> dict[str, object]:
        """Return the device and the variant of the plan."""
        plan = self.evaluator.binding
        return {"device": str(plan.device), "variant": plan.variant}

    def name(self, item: Walker) -> str:
        """Return the name of a walker's report."""
        return item.name

    def sha256(self, item: Walker) -> str:
        """Return a fingerprint of a walker's files; "" if one cannot be read."""
        try:
            return json.dumps([fingerprint(path) for path in (item.report, item.trajectory)])
        except OSError:
            return ""

    def compute(self, item: Walker) -> dict[str, Any]:
        """Compute the poses of a walker."""
        report = read_report(item.report)
        frames = Trajectory(item.trajectory, self.evaluator.binding.given, None, self._read[1])
        n = min(len(report), len(frames))
        if len(report) != len(frames):
            note(
                f"Note: {item.report} has {len(report):,} rows, its trajectory {len(frames):,} models; the first "
                f"{n:,} are used"
            )
        if not n:
            raise InputError("the report has no rows")
        pieces = [self.evaluator.evaluate(piece.positions) for piece in frames.part(frames.frames[:n]).pieces()]
        return _beside(report, _joined(pieces), item).as_json()


def _beside(report: Report, energies: PoseEnergies, walker: Walker) -> WalkerPoses:
    """Combine computed energies with those of PELE, for the first rows of a report."""
    m = len(energies.total)
    columns = {"total": energies.total, "binding": energies.binding}
    for name, theirs in (("pele_total", TOTAL), ("pele_binding", BINDING)):
        found = report.numbers(*theirs)
        columns[name] = np.full(m, np.nan) if found is None else found[:m]
    return WalkerPoses(walker.name, columns, energies.errors)


def _joined(pieces: list[PoseEnergies]) -> PoseEnergies:
    """Concatenate the energies of consecutive pieces of poses."""
    errors, first = dict[int, str](), 0
    for piece in pieces:
        errors |= {first + k: why for k, why in piece.errors.items()}
        first += len(piece.total)
    return PoseEnergies(
        np.concatenate([piece.total for piece in pieces]), np.concatenate([piece.binding for piece in pieces]), errors
    )
