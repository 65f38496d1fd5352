"""PELE's loop on ensembles: move a ligand and its receptor, minimise, and keep the step by Metropolis' rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from .anm import ANM
from .box import Box, Cylinder, Prism, Shell, Sphere, Spheres
from .explorer import Explorer, Step
from .minimization import Minimization
from .modes import Modes, network_modes, read_nmd, write_nmd
from .perturbation import Perturbation
from .poses import Measures, Refined
from .refiner import Refiner
from .refining import RefineBatch, refine
from .regions import Region
from .rot_assign import read_rot_assign
from .rotamers import RotamerLibrary, read_side_file
from .side_chains import SideChainPredictor, SideChains, predict_side_chains
from .spawning import Cluster, Clusters
from .torsions import Flexible, flexible_ligand, flexible_residues
from .walk import Move, Settings, Stage, Walk

__all__ = [
    "ANM",
    "Box",
    "Cluster",
    "Clusters",
    "Cylinder",
    "Explorer",
    "Flexible",
    "Measures",
    "Minimization",
    "Modes",
    "Move",
    "Perturbation",
    "Prism",
    "RefineBatch",
    "Refined",
    "Refiner",
    "Region",
    "RotamerLibrary",
    "Settings",
    "Shell",
    "SideChainPredictor",
    "SideChains",
    "Sphere",
    "Spheres",
    "Stage",
    "Step",
    "Walk",
    "flexible_ligand",
    "flexible_residues",
    "network_modes",
    "predict_side_chains",
    "read_nmd",
    "read_rot_assign",
    "read_side_file",
    "refine",
    "write_nmd",
]  # fmt: skip

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "anm": "MODES RESTRAINT",
            "metrics": "BindingEnergy PROBE Rmsd Sasa States sasa_radii",
            "metropolis": "BOLTZMANN is_accepted",
            "philox": "normals uniform",
            "poses": "CLASH clashes_of ranks_of",
            "regions": "is_close",
            "reports": "numbered report_head report_row",
            "rigid": "SMALL directions_about drawn_moves euler_angles lengths random_directions random_frames "
            "rotations_of",
            "rotamers": "Rotamers",
            "rotations": "RotamerChain side_chains_of torsions_at",
            "sensors": "Sensor Sensors changed changing_blocks",
            "side_chains": "PredictionArrays",
            "run_files": "ends_of said_of",
            "spawning": "shares",
            "spec": "Exploration ExploreWork ForceFieldFiles Steps task_seed",
            "torsions": "SideChain Torsion",
            "trajectory": "PelePdb",
        },
    )
