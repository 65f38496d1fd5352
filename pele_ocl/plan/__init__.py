"""Base of Solvent, Nonbond and Energy: a molecule prepared once and evaluated for many conformations."""

from __future__ import annotations
