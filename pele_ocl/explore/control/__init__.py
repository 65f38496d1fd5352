"""PELE's control file: blocks, tasks, selections and conditions."""

from __future__ import annotations

from .simulation import Simulation, SimulationTask, read_simulation

__all__ = ["Simulation", "SimulationTask", "read_simulation"]
