"""Molecular dynamics of many replicas on one device."""

from __future__ import annotations

from .simulation import Simulation

__all__ = ["Simulation"]
