"""Plan that solvent, nonbond and energy build on: a molecule prepared once, evaluated in many conformations."""

from __future__ import annotations
