"""Dynamics of many replicas: rows of an ensemble that move in time on a device."""

from __future__ import annotations

from .simulation import Simulation

__all__ = ["Simulation"]
