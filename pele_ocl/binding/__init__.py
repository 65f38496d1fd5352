"""Binding energies: a complex's less its receptor's and its ligand's, frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from .energies import PARTS, BindingEnergies
from .plan import Binding
from .poisson_boltzmann import PBSolvent
from .statistics import Spread, spread_of

__all__ = ["PARTS", "Binding", "BindingEnergies", "PBSolvent", "Spread", "spread_of"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "alanine": "CH alanines_of mutable_residues to_alanine unbonded",
            "amber": "amber_terms",
            "decomposition": "Decomposition GROUPS Shares",
            "decomposition_files": "write_decomposition",
            "energies": "is_close",
            "entropy": "MOST_SIGMA entropy_of interaction_entropy",
            "pictures": "draw_pairs draw_residues draw_running_mean write_coloured",
            "plan": "binding_trajectory",
            "poisson_boltzmann": "PBEnergy PBSolvent default_model",
            "poses": "Poses evaluate_poses pose_rmsd read_poses",
            "scan": "alanine_scan interface_residues",
            "separate": "separate_energies",
        },
    )
