"""Runs of PELE: its reports and trajectories, and the energies of its poses computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .poses import PoseEnergies, PoseEvaluator
from .reports import Report, read_report
from .runs import PeleRun, Walker, find_run

__all__ = ["PeleRun", "PoseEnergies", "PoseEvaluator", "Report", "Walker", "find_run", "read_report"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "agreement": "Agreement",
            "cutoffs": "AtomGroups",
        },
    )
