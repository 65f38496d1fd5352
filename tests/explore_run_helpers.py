"""A small complex with its control file: a hexapeptide, and a tripeptide as the ligand, chain L."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from forcefield_helpers import ROOT

STRUCTURES = ROOT / "data" / "structures"
SIMULATION: dict[str, Any] = {
    "Initialization": {
        "ForceField": "AMBER99sb",
        "MultipleComplex": [{"files": [{"path": "complex.pdb"}]}],
        "allowMissingTerminals": True,
        "Solvent": {"ionicStrength": 0.25, "solventType": "OBC", "useDebyeLength": True},
    },
    "simulationLogPath": "out/log.txt",
    "controlFileSavingPath": "out/originalControlFile.conf",
    "commands": [
        {
            "commandType": "peleSimulation",
            "RandomGenerator": {"seed": 7},
            "selectionToPerturb": {"chains": {"names": ["L"]}},
            "PELE_Output": {
                "reportPath": "out/report",
                "trajectoryPath": "out/trajectory.pdb",
                "initialPdbPath": "out/initial.pdb",
                "finalPdbPath": "out/final.pdb",
            },
            "PELE_Parameters": {
                "temperature": 1500,
                "anmFrequency": 0,
                "sideChainPredictionFrequency": 0,
                "activateProximityDetection": False,
            },
            "Minimizer": {"parameters": {"MinimumRMS": 2.0, "MaximumMinimizationIterations": 1}},
            "Perturbation": {
                "perturbationType": "naive",
                "translationDirection": "random",
                "parameters": {
                    "numberOfTrials": 2,
                    "numberOfStericTrials": 50,
                    "translationRange": 0.5,
                    "rotationScalingFactor": 0.05,
                    "overlapFactor": 0.6,
                },
                "Box": {"type": "sphericalBox", "radius": 30, "fixedCenter": [0.0, 0.0, 0.0]},
            },
            "PeleTasks": [
                {
                    "PELE_Parameters": {"numberOfPeleSteps": 4},
                    "metrics": [
                        {"type": "bindingEnergy", "boundPartSelection": {"chains": {"names": ["L"]}}},
                        {"type": "sasa", "tag": "sasaLig", "selection": {"chains": {"names": ["L"]}}},
                        {
                            "type": "rmsd",
                            "tag": "ligandRMSD",
                            "Native": {"path": "complex.pdb"},
                            "selection": {"chains": {"names": ["L"]}},
                            "doSuperposition": False,
                        },
                        {"type": "random", "tag": "rand"},
                    ],
                    "parametersChanges": [
                        {
                            "ifAnyIsTrue": ["rand >= 0.5"],
                            "doThesechanges": {"Perturbation::parameters": {"translationRange": 0.25}},
                            "otherwise": {"Perturbation::parameters": {"translationRange": 1.0}},
                        }
                    ],
                }
            ],
        }
    ],
}


def complex_lines(shift: float = 0.0) -> list[str]:
    """Return the complex, with its ligand shifted along x, as lines of a PDB file."""
    found = []
    for name, chain, away in (("hexapeptide", "A", 0.0), ("trialanine", "L", 11.0 + shift)):
        lines = (STRUCTURES / f"{name}.pdb").read_text().splitlines()
        for line in (line for line in lines if line.startswith("ATOM")):
            number = len([one for one in found if one.startswith("ATOM")]) + 1
            x = float(line[30:38]) + away
            found.append(f"ATOM  {number:5d}{line[11:21]}{chain}{line[22:30]}{x:8.3f}{line[38:].ljust(42)}"[:80])
        found.append("TER")
    return found


def write_complex(path: Path, shift: float = 0.0) -> Path:
    path.write_text("\n".join([*complex_lines(shift), "END", ""]))
    return path


def settings(**changes: Any) -> dict[str, Any]:
    """Copy the simulation and change blocks of the command: `task_metrics=[]`, `ANM={}`; None removes a block."""
    whole = copy.deepcopy(SIMULATION)
    command = whole["commands"][0]
    for name, value in changes.items():
        of = command["PeleTasks"][0] if name.startswith("task_") else command
        if value is None:
            of.pop(name.removeprefix("task_"), None)
        else:
            of[name.removeprefix("task_")] = value
    return whole


def write_run(folder: Path, whole: dict[str, Any] | None = None) -> Path:
    """Write complex and control file to a folder, and return the path of the control file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_complex(folder / "complex.pdb")
    control = folder / "pele.conf"
    control.write_text(json.dumps(whole or settings(), indent=1))
    return control
