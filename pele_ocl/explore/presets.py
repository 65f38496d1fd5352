"""Presets: control files with the settings that pele_platform uses for a structure and its ligand.

The values are from pele_platform 1.6.4: `features/adaptive.py`, `constants/pele_params.py` and its control file
template. AdaptivePELE runs epochs and spawns explorers between them; here each explorer makes the steps of all epochs
in one walk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..atoms import Floats, Labels
from ..common.arguments import choice

DEFAULT = "induced_fit_fast"
LEAST_NODES = 12  # minimum number of alpha carbons for ANM moves of the receptor
_ENDS_HELD = 5.0  # kcal/mol/A^2, restraint of the first and last alpha carbon of a chain

_HOLD = "perturbationCOMConstraintConstant"  # the only changing setting outside the Perturbation block

Changes = tuple[tuple[str, Mapping[str, float], Mapping[str, float]], ...]


@dataclass(frozen=True)
class Preset:
    """Settings of pele_platform for one purpose.

    epochs, steps : number of AdaptivePELE epochs, and of PELE steps in each
    radius : radius of the box for the ligand's centre of mass, A; None for no box
    steric_trials : numberOfStericTrials; com_constant : perturbationCOMConstraintConstant
    held, every : force constant of restrained alpha carbons within a chain, kcal/mol/A^2, and number of residues
        between them
    changes : parametersChanges: condition, settings if it is true, settings if it is false
    starts_anywhere : whether explorers start at random positions around the receptor, in a box that encloses it
    temperature, anm_frequency, side_chain_frequency : as in the control file, K and steps
    """

    epochs: int
    steps: int
    radius: float | None
    steric_trials: int
    changes: Changes
    temperature: float = 1500.0
    com_constant: float = 0.0
    anm_frequency: int = 4
    side_chain_frequency: int = 2
    held: float = 0.5
    every: int = 10
    starts_anywhere: bool = False


_INDUCED_FIT: Changes = (
    ("rand >= .5", {"rotationScalingFactor": 0.05}, {"rotationScalingFactor": 0.2}),
    ("rand1 >= 0.5", {"translationRange": 0.5}, {"translationRange": 1.0}),
    (
        "rand2 >= 0.5", {"steeringUpdateFrequency": 0, "numberOfTrials": 30},
        {"steeringUpdateFrequency": 1, "numberOfTrials": 10},
    ),
)  # fmt: skip
_RESCORING: Changes = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.05}),
    ("rand1 >= 0.5", {"translationRange": 0.25}, {"translationRange": 0.5}),
)  # fmt: skip
_OUT_IN: Changes = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.25}),
    (
        "rand1 >= 0.5", {"translationRange": 0.75, "numberOfTrials": 10},
        {"translationRange": 1.5, "numberOfTrials": 10},
    ),
    ("rand2 >= 0.6", {"steeringUpdateFrequency": 0}, {"steeringUpdateFrequency": 2}),
    ("sasaLig >= 0.85", {"translationRange": 3.0, "numberOfTrials": 20}, {}),
    (
        "sasaLig <= 0.35", {"rotationScalingFactor": 0.1, "translationRange": 0.75, "numberOfTrials": 20}, {},
    ),
)  # fmt: skip
_GLOBAL: Changes = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.25}),
    (
        "rand1 >= 0.5", {"translationRange": 2.0, "numberOfTrials": 10}, {"translationRange": 1.0, "numberOfTrials": 10}
    ),
    ("rand2 >= 0.5", {"steeringUpdateFrequency": 0}, {"steeringUpdateFrequency": 1}),
    ("sasaLig >= 0.85", {"translationRange": 3.0, "numberOfTrials": 20}, {}),
    (
        "sasaLig <= 0.35",
        {"rotationScalingFactor": 0.1, "translationRange": 0.75, "numberOfTrials": 40, "steeringUpdateFrequency": 0},
        {},
    ),
)  # fmt: skip
_GPCR_ORTH: Changes = (
    ("rand >= .5", {"rotationScalingFactor": 0.1}, {"rotationScalingFactor": 0.2}),
    ("rand1 >= 0.5", {"translationRange": 2.0}, {"translationRange": 1.0}),
    (
        "rand2 >= 0.66", {"steeringUpdateFrequency": 0, "numberOfTrials": 10},
        {"steeringUpdateFrequency": 2, "numberOfTrials": 10},
    ),
    ("sasaLig >= 0.85", {"translationRange": 3.0, "steeringUpdateFrequency": 0, "numberOfTrials": 40}, {}),
    ("sasaLig <= 0.35", {"rotationScalingFactor": 0.1, "translationRange": 1.0}, {}),
)  # fmt: skip
_IN_OUT: Changes = (
    ("rand >= .5", {"rotationScalingFactor": 0.05}, {"rotationScalingFactor": 0.15}),
    ("rand1 >= 0.40", {"translationRange": 2.0}, {"translationRange": 2.0}),
    (
        "rand3 >= 0.10", {"steeringUpdateFrequency": 1, "numberOfTrials": 10},
        {"steeringUpdateFrequency": 0, "numberOfTrials": 25},
    ),
    ("sasaLig <= 0.15", {_HOLD: 0.25, "translationRange": 1.0}, {_HOLD: 1.0}),
    ("sasaLig >= 0.75", {_HOLD: 10.0, "steeringUpdateFrequency": 1, "numberOfTrials": 4}, {}),
)  # fmt: skip
PRESETS = {
    "induced_fit_fast": Preset(25, 12, 6.0, 500, _INDUCED_FIT, com_constant=1.0),
    "induced_fit_long": Preset(10, 100, 6.0, 500, _INDUCED_FIT, com_constant=1.0),
    "induced_fit_exhaustive": Preset(1, 1000, 6.0, 500, _INDUCED_FIT, com_constant=1.0),
    "rescoring": Preset(
        20, 12, None, 500, _RESCORING, temperature=1000.0, anm_frequency=0, side_chain_frequency=1, held=2.5, every=8
    ),
    "out_in": Preset(100, 8, 30.0, 250, _OUT_IN, com_constant=1.0, side_chain_frequency=1),
    "in_out": Preset(1000, 2, 50.0, 500, _IN_OUT),
    "gpcr_orth": Preset(50, 8, 15.0, 100, _GPCR_ORTH, held=5.0, every=5),
    "global": Preset(100, 8, None, 200, _GLOBAL, starts_anywhere=True),
}


def preset_of(name: str) -> Preset:
    """Return a preset by name. Raises InputError for an unknown name."""
    choice("preset", name, PRESETS)
    return PRESETS[name]


def control_of(
    preset: Preset, structure: str, chain: str, center: Floats, labels: Labels, seed: int | None,
    starts: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return the control file of a preset as JSON data.

    structure : path of the complex, also the reference of ligandRMSD; chain : chain of the ligand
    center : centre of the box, (3,) A; starts : paths of the initial complexes, by default the complex
    labels : labels of the complex, used to restrain its alpha carbons
    seed : seed of the random numbers, None to take it from the clock

    The solvent model is OBC, which supports any ligand; VDGBNP of pele_platform needs parameters of OPLS templates.
    """
    ligand = {"chains": {"names": [chain]}}
    nodes = alpha_carbons(labels)
    moves = {} if len(nodes) < LEAST_NODES or not preset.anm_frequency else {"ANM": _anm()}
    tags = ["rand", "rand1", "rand2"]
    tags += [tag for tag in ("rand3",) if any(condition.startswith(f"{tag} ") for condition, _, _ in preset.changes)]
    box = {"type": "sphericalBox", "radius": preset.radius, "fixedCenter": np.round(center, 3).tolist()}
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
            "perturbationCOMConstraintConstant": preset.com_constant, "sideChainPredictionRegionRadius": 6,
            "activateProximityDetection": True, "temperature": preset.temperature,
            "numberOfPeleSteps": preset.epochs * preset.steps,
        },
        "constraints": restraints_of(labels, nodes, preset),
        "Perturbation": {
            **({} if preset.radius is None else {"Box": box}),
            "perturbationType": "naive", "translationDirection": "steered", "rotationAngles": "nonCoupled",
            "parameters": {
                "numberOfStericTrials": preset.steric_trials, "steeringUpdateFrequency": 0, "overlapFactor": 0.65,
            },
        },
        **moves,
        "SideChainPrediction": {
            "algorithm": "zhexin",
            "parameters": {
                "discardHighEnergySolutions": False, "resolution": 10, "randomize": False, "numberOfIterations": 1,
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
                    *({"tag": tag, "type": "random"} for tag in tags),
                ],
                "parametersChanges": [
                    {
                        "ifAnyIsTrue": [condition], "doThesechanges": _by_blocks(then),
                        "otherwise": _by_blocks(otherwise),
                    }
                    for condition, then, otherwise in preset.changes
                ],
            }
        ],
    }  # fmt: skip
    return {
        "Initialization": {
            "allowMissingTerminals": True, "ForceField": "AMBER99sb",
            "MultipleComplex": [{"files": [{"path": path}]} for path in starts or [structure]],
            "Solvent": {"ionicStrength": 0.15, "solventType": "OBC", "useDebyeLength": True},
        },
        "commands": [command],
    }  # fmt: skip


def _by_blocks(settings: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Group changing settings by block."""
    found: dict[str, dict[str, float]] = {}
    for name, value in settings.items():
        found.setdefault("Pele::parameters" if name == _HOLD else "Perturbation::parameters", {})[name] = value
    return found


def alpha_carbons(labels: Labels) -> list[int]:
    """Return the indices of the alpha carbons of residues that have a backbone nitrogen."""
    has_backbone = set(labels.residue_index[labels.names == "N"].tolist())
    alpha = np.flatnonzero((labels.names == "CA") & (labels.elements == "C")).tolist()
    return [k for k in alpha if int(labels.residue_index[k]) in has_backbone]


def restraints_of(labels: Labels, nodes: Sequence[int], preset: Preset) -> list[dict[str, Any]]:
    """Return position restraints for the ends of each chain and for alpha carbons at intervals between them.

    nodes : indices of all alpha carbons
    """
    found, numbers, codes = list[dict[str, Any]](), labels.residue_numbers, labels.insertion_codes
    by_chain = dict[str, list[int]]()
    for node in nodes:
        by_chain.setdefault(str(labels.chains[node]), []).append(node)
    for chain, own in by_chain.items():
        held = {own[0]: _ENDS_HELD, own[-1]: _ENDS_HELD}
        last = -math.inf
        for node in own[preset.every : -preset.every]:
            if abs(numbers[node] - last) >= preset.every:
                last, held[node] = float(numbers[node]), preset.held
        found += [
            {
                "type": "constrainAtomToPosition", "springConstant": held[node], "equilibriumDistance": 0.0,
                "constrainThisAtom": f"{chain or '_'}:{numbers[node]}{codes[node]}:_CA_",
            }
            for node in sorted(held)
        ]  # fmt: skip
    return found


def _anm() -> dict[str, Any]:
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
            "displacementFactor": 0.75, "mainModeWeightForMixModes": 0.75,
            "modesChangeFrequency": 4, "numberOfModes": 6, "relaxationSpringConstant": 0.5,
        },
    }  # fmt: skip
