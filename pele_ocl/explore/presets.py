"""Control files by name: the settings that pele_platform runs a structure and its ligand with.

Values are those of pele_platform 1.6.4: `features/adaptive.py`, `constants/pele_params.py` and its template of a
control file. AdaptivePELE runs them in epochs, and spawns explorers between these; here the steps of all epochs are one
walk of each explorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..atoms import Floats, Labels
from ..common.arguments import choice

DEFAULT = "induced_fit_fast"
LEAST_NODES = 12  # alpha carbons of a receptor that moves along elastic modes
_EVERY, _HELD, _ENDS_HELD = 10, 0.5, 5.0  # residues between restrained alpha carbons; kcal/mol/A^2


@dataclass(frozen=True)
class Preset:
    """Settings of pele_platform for one purpose.

    epochs, steps : of AdaptivePELE, and of PELE in each
    radius : of the box about the ligand's centre of mass, A; steric_trials : numberOfStericTrials
    changes : parametersChanges of the perturbation, each with a condition, then, otherwise
    about : what it is for, in a few words; others as in the control file
    """

    about: str
    epochs: int
    steps: int
    radius: float
    steric_trials: int
    changes: tuple[tuple[str, Mapping[str, float], Mapping[str, float]], ...]
    temperature: float = 1500.0
    anm_frequency: int = 4
    side_chain_frequency: int = 2
    displacement: float = 0.75
    modes_change: int = 4


_INDUCED_FIT = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.25}),
    ("rand1 >= 0.5", {"translationRange": 0.5}, {"translationRange": 1.0}),
    (
        "rand2 >= 0.5", {"steeringUpdateFrequency": 0, "numberOfTrials": 30},
        {"steeringUpdateFrequency": 1, "numberOfTrials": 10},
    ),
)  # fmt: skip
_RESCORING = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.05}),
    ("rand1 >= 0.5", {"translationRange": 0.25}, {"translationRange": 0.5}),
    (
        "rand2 >= 0.5", {"steeringUpdateFrequency": 0, "numberOfTrials": 25},
        {"steeringUpdateFrequency": 0, "numberOfTrials": 25},
    ),
)  # fmt: skip
_OUT_IN: tuple[tuple[str, Mapping[str, float], Mapping[str, float]], ...] = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.25}),
    (
        "rand1 >= 0.5", {"translationRange": 3.0, "numberOfTrials": 10},
        {"translationRange": 1.25, "numberOfTrials": 10},
    ),
    ("sasaLig >= 0.85", {"translationRange": 5.0, "numberOfTrials": 20}, {}),
    (
        "sasaLig <= 0.35",
        {"rotationScalingFactor": 0.1, "translationRange": 0.75, "numberOfTrials": 40, "steeringUpdateFrequency": 0},
        {},
    ),
)  # fmt: skip
PRESETS = {
    "induced_fit_fast": Preset("a ligand in its pocket, which adapts", 30, 12, 6.0, 500, _INDUCED_FIT),
    "induced_fit_exhaustive": Preset("the same in one long walk", 1, 1000, 6.0, 500, _INDUCED_FIT),
    "rescoring": Preset(
        "small moves about a pose", 20, 12, 6.0, 500, _RESCORING, temperature=1000.0, anm_frequency=6,
        side_chain_frequency=3, displacement=0.5, modes_change=3,
    ),
    "out_in": Preset("from the surface towards a pocket", 100, 8, 30.0, 250, _OUT_IN),
}  # fmt: skip


def preset_of(name: str) -> Preset:
    """Find a preset. Raises InputError for a name that there is none of."""
    choice("preset", name, PRESETS)
    return PRESETS[name]


def control_of(
    preset: Preset, structure: str, chain: str, center: Floats, labels: Labels, seed: int | None
) -> dict[str, Any]:  # fmt: skip
    """Make the control file of a preset as JSON.

    structure : path of the complex; chain : of the ligand; center : (3,) A of the box
    labels : of the complex, whose alpha carbons are restrained
    seed : of all random numbers, None for one by the clock

    The solvent is OBC, whose radii any ligand has; pele_platform's VDGBNP needs figures of OPLS templates.
    """
    ligand = {"chains": {"names": [chain]}}
    nodes = alpha_carbons(labels)
    moves = {} if len(nodes) < LEAST_NODES else {"ANM": _anm(preset)}
    command = {
        "commandType": "peleSimulation",
        **({} if seed is None else {"RandomGenerator": {"seed": seed}}),
        "selectionToPerturb": ligand,
        "PELE_Output": {
            "savingFrequencyForAcceptedSteps": 1, "savingMode": "savingTrajectory",
            "reportPath": "report", "trajectoryPath": "trajectory.pdb",
        },
        "PELE_Parameters": {
            "anmFrequency": preset.anm_frequency if moves else 0,
            "sideChainPredictionFrequency": preset.side_chain_frequency, "minimizationFrequency": 1,
            "perturbationCOMConstraintConstant": 0, "sideChainPredictionRegionRadius": 6,
            "activateProximityDetection": True, "temperature": preset.temperature,
            "numberOfPeleSteps": preset.epochs * preset.steps,
        },
        "constraints": restraints_of(labels, nodes),
        "Perturbation": {
            "Box": {"type": "sphericalBox", "radius": preset.radius, "fixedCenter": np.round(center, 3).tolist()},
            "perturbationType": "naive", "translationDirection": "steered", "rotationAngles": "nonCoupled",
            "parameters": {
                "numberOfStericTrials": preset.steric_trials, "steeringUpdateFrequency": 0, "overlapFactor": 0.65,
            },
        },
        **moves,
        "SideChainPrediction": {
            "algorithm": "zhexin",
            "parameters": {
                "discardHighEnergySolutions": False, "resolution": 30, "randomize": False, "numberOfIterations": 1,
            },
        },
        "Minimizer": {"algorithm": "TruncatedNewton", "parameters": {"MinimumRMS": 0.2, "alphaUpdated": False}},
        "PeleTasks": [
            {
                "metrics": [
                    {"type": "bindingEnergy", "boundPartSelection": ligand},
                    {"type": "sasa", "tag": "sasaLig", "selection": ligand},
                    {
                        "type": "rmsd", "tag": "ligandRMSD", "Native": {"path": structure}, "selection": ligand,
                        "includeHydrogens": False, "doSuperposition": False,
                    },
                    *({"tag": tag, "type": "random"} for tag in ("rand", "rand1", "rand2")),
                ],
                "parametersChanges": [
                    {
                        "ifAnyIsTrue": [condition], "doThesechanges": {"Perturbation::parameters": dict(then)},
                        "otherwise": {"Perturbation::parameters": dict(otherwise)} if otherwise else {},
                    }
                    for condition, then, otherwise in preset.changes
                ],
            }
        ],
    }  # fmt: skip
    return {
        "Initialization": {
            "allowMissingTerminals": True, "ForceField": "AMBER99sb",
            "MultipleComplex": [{"files": [{"path": structure}]}],
            "Solvent": {"ionicStrength": 0.15, "solventType": "OBC", "useDebyeLength": True},
        },
        "commands": [command],
    }  # fmt: skip


def alpha_carbons(labels: Labels) -> list[int]:
    """List the alpha carbons of residues with a backbone, by index."""
    has_backbone = set(labels.residue_index[labels.names == "N"].tolist())
    alpha = np.flatnonzero((labels.names == "CA") & (labels.elements == "C")).tolist()
    return [k for k in alpha if int(labels.residue_index[k]) in has_backbone]


def restraints_of(labels: Labels, nodes: Sequence[int]) -> list[dict[str, Any]]:
    """Hold the ends of each chain, and every tenth alpha carbon between them, where they are. nodes : alpha carbons"""
    chains = labels.chains[list(nodes)].tolist()
    found = list[dict[str, Any]]()
    for k, node in enumerate(nodes):
        is_end = k in (0, len(nodes) - 1) or chains[k] != chains[k - 1] or chains[k] != chains[k + 1]
        if is_end or int(labels.residue_numbers[node]) % _EVERY == 1:
            number = f"{labels.residue_numbers[node]}{labels.insertion_codes[node]}"
            found.append(
                {
                    "type": "constrainAtomToPosition", "springConstant": _ENDS_HELD if is_end else _HELD,
                    "equilibriumDistance": 0.0, "constrainThisAtom": f"{chains[k] or '_'}:{number}:_CA_",
                }
            )  # fmt: skip
    return found


def _anm(preset: Preset) -> dict[str, Any]:
    return {
        "algorithm": "CARTESIANS", "nodes": {"atoms": {"names": ["_CA_"]}},
        "ANMMinimizer": {
            "algorithm": "TruncatedNewton",
            "parameters": {
                "MaximumMinimizationIterations": 1, "MaximumNewtonIterations": 25, "MinimumRMS": 0.2,
                "alphaUpdated": False, "nonBondingListUpdatedEachMinStep": False,
            },
        },
        "options": {
            "directionGeneration": "random", "modesMixingOption": "mixMainModeWithOthersModes",
            "pickingCase": "RANDOM_MODE",
        },
        "parameters": {
            "displacementFactor": preset.displacement, "mainModeWeightForMixModes": 0.75,
            "modesChangeFrequency": preset.modes_change, "numberOfModes": 6, "relaxationSpringConstant": 0.5,
        },
    }  # fmt: skip
