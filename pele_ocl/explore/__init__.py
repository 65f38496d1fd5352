"""PELE's loop on ensembles: move a ligand and its receptor, minimise, and keep the step by Metropolis' rule."""

from __future__ import annotations

from .box import Box, Cylinder, Prism, Shell, Sphere, Spheres
from .explorer import Explorer, Step
from .minimization import Minimization
from .perturbation import Perturbation
from .regions import Region
from .rot_assign import read_rot_assign
from .torsions import Flexible, flexible_ligand, flexible_residues
from .walk import Move, Settings, Stage, Walk

__all__ = [
    "Box", "Cylinder", "Explorer", "Flexible", "Minimization", "Move", "Perturbation", "Prism", "Region", "Settings",
    "Shell", "Sphere", "Spheres", "Stage", "Step", "Walk", "flexible_ligand", "flexible_residues", "read_rot_assign",
]  # fmt: skip
