"""Binding energies: a complex's less its receptor's and its ligand's, frame by frame."""

from __future__ import annotations

from .energies import PARTS, BindingEnergies
from .plan import Binding
from .poisson_boltzmann import PBSolvent
from .statistics import Spread, spread_of

__all__ = ["PARTS", "Binding", "BindingEnergies", "PBSolvent", "Spread", "spread_of"]
