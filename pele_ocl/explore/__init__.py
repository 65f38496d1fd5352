"""PELE's loop on ensembles: move a ligand and its receptor, minimise, and keep the step by Metropolis' rule."""

from __future__ import annotations

from .walk import Move, Settings, Stage, Walk

__all__ = ["Move", "Settings", "Stage", "Walk"]
