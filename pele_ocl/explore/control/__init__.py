"""PELE's control file in full: blocks, tasks, selections and conditions."""

from __future__ import annotations

from .simulation import Simulation, Task, read_simulation

__all__ = ["Simulation", "Task", "read_simulation"]
