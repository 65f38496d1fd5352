"""The poses of a PELE run, walker by walker, here or by workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...binding.pele import PoseEnergies, PoseEvaluator, Report, Walker, read_report
from ...errors import PeleError
from ...trajectories import Trajectory
from ..structures.choice import Bools
from ..terminal import note, one_line


@dataclass(frozen=True)
class Evaluated:
    """The poses of one walker: its report and the energies of its rows, or the reason why there are none."""

    walker: Walker
    report: Report | None = None
    energies: PoseEnergies | None = None
    error: str = ""


def evaluate_walkers(evaluator: PoseEvaluator, chosen: Bools | None) -> Callable[[Walker], Evaluated]:
    """The function that computes the poses of a walker; one that cannot be read is a result that says why.

    chosen : (n_all,) True for each atom of the trajectories that was taken, None for all
    """

    def evaluate(walker: Walker) -> Evaluated:
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
                return Evaluated(walker, error="the report has no rows")
            pieces = [evaluator.evaluate(piece.positions) for piece in frames.part(frames.frames[:n]).pieces()]
        except PeleError as error:
            return Evaluated(walker, error=one_line(str(error)))
        return Evaluated(walker, replace(report, rows=report.rows[:n]), _joined(pieces))

    return evaluate


def _joined(pieces: list[PoseEnergies]) -> PoseEnergies:
    """The energies of neighbouring poses."""
    errors, first = dict[int, str](), 0
    for piece in pieces:
        errors |= {first + k: why for k, why in piece.errors.items()}
        first += len(piece.total)
    return PoseEnergies(
        np.concatenate([piece.total for piece in pieces]), np.concatenate([piece.binding for piece in pieces]), errors
    )
