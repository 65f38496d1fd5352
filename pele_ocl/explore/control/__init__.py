"""PELE's control file in full: blocks, tasks, selections and conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .simulation import Simulation, SimulationTask, read_simulation

__all__ = ["Simulation", "SimulationTask", "read_simulation"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "blocks": "ANM_MINIMIZER AnmBlock MinimizerBlock PeleParameters PerturbationBlock SideChainBlock",
            "building": "MetricMaker box_of constraint_terms",
            "conditions": "parse_condition",
            "explorers": "moves_of settings_of",
            "selections": "selected",
            "simulation": "BoxBlock ConstraintBlock MetricBlock",
        },
    )
