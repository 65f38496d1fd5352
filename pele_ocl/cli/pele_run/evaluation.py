"""The poses of a PELE run, walker by walker, here or by workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...atoms import Floats
from ...binding.pele import PoseEnergies, PoseEvaluator, Walker, read_report
from ...binding.pele.reports import BINDING, TOTAL, Report
from ...errors import PeleError
from ...trajectories import Trajectory
from ..structures.choice import Bools
from ..terminal import note, one_line

ENERGIES = ("total", "binding", "pele_total", "pele_binding")


@dataclass(frozen=True, eq=False)
class WalkerPoses:
    """The poses of one walker.

    name : of its report; columns : ENERGIES -> (m,) kcal/mol, NaN for what is not there
    errors : why poses failed, by their place; error : why there are none, "" where there are
    """

    name: str
    columns: Mapping[str, Floats] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    error: str = ""

    def __len__(self) -> int:
        return len(self.columns[ENERGIES[0]]) if self.columns else 0

    def as_json(self) -> dict[str, Any]:
        """All of it, as from_json takes it."""
        columns = {name: values.tolist() for name, values in self.columns.items()}
        return {"name": self.name, "columns": columns, "errors": dict(self.errors), "error": self.error}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> WalkerPoses:
        """The same poses, to the last bit."""
        columns = {name: np.array(values, np.float64) for name, values in given["columns"].items()}
        return cls(given["name"], columns, {int(k): why for k, why in given["errors"].items()}, given["error"])


def evaluate_walkers(evaluator: PoseEvaluator, chosen: Bools | None) -> Callable[[Walker], WalkerPoses]:
    """The function that computes the poses of a walker; one that cannot be read is a result that says why.

    chosen : (n_all,) True for each atom of the trajectories that was taken, None for all
    """

    def evaluate(walker: Walker) -> WalkerPoses:
        try:
            report = read_report(walker.report)
            frames = Trajectory(walker.trajectory, evaluator.binding.given, None, chosen)
            n = min(len(report), len(frames))
            if len(report) != len(frames):
                note(
                    f"Note: {walker.report} has {len(report):,} rows, its trajectory {len(frames):,} models; the first "
                    f"{n:,} are taken"
                )
            if not n:
                return WalkerPoses(walker.name, error="the report has no rows")
            pieces = [evaluator.evaluate(piece.positions) for piece in frames.part(frames.frames[:n]).pieces()]
            return _beside(report, _joined(pieces), walker)
        except PeleError as error:
            return WalkerPoses(walker.name, error=one_line(str(error)))

    return evaluate


def _beside(report: Report, energies: PoseEnergies, walker: Walker) -> WalkerPoses:
    """Our energies of the first rows of a report beside PELE's."""
    m = len(energies.total)
    columns = {"total": energies.total, "binding": energies.binding}
    for name, theirs in (("pele_total", TOTAL), ("pele_binding", BINDING)):
        found = report.numbers(*theirs)
        columns[name] = np.full(m, np.nan) if found is None else found[:m]
    return WalkerPoses(walker.name, columns, energies.errors)


def _joined(pieces: list[PoseEnergies]) -> PoseEnergies:
    """The energies of neighbouring poses."""
    errors, first = dict[int, str](), 0
    for piece in pieces:
        errors |= {first + k: why for k, why in piece.errors.items()}
        first += len(piece.total)
    return PoseEnergies(
        np.concatenate([piece.total for piece in pieces]), np.concatenate([piece.binding for piece in pieces]), errors
    )
