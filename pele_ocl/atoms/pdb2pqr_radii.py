"""Radii of PDB2PQR's force fields, by the names of residues and atoms: data/pdb2pqr_radii.csv."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache

import numpy as np

from ..common.errors import ParameterError
from ..common.installation import shipped
from .labels import Floats, Labels
from .radii import PDB2PQR

# Residues of one name that differ in protons or disulphide bonds, by PDB2PQR's names, and other names of residues.
_STATES = {
    "HIS": ("HID", "HIE", "HIP"), "HSD": ("HID",), "HSE": ("HIE",), "HSP": ("HIP",), "CYS": ("CYS", "CYX", "CYM"),
    "ASP": ("ASP", "ASH"), "GLU": ("GLU", "GLH"), "LYS": ("LYS", "LYN"), "TYR": ("TYR", "TYM"), "HOH": ("WAT",),
    "A": ("RA",), "C": ("RC",), "G": ("RG",), "U": ("RU",),
}  # fmt: skip
_ENDS = ("{}", "N{}", "C{}", "{}5", "{}3", "{}N")  # of chains and strands, within PDB2PQR's names
_ATOMS = {"HO5'": "H5T", "HO3'": "H3T", "OP1": "O1P", "OP2": "O2P"}


def radii_by_names(name: str, labels: Labels) -> Floats:
    """Radii (n,) A of a force field of PDB2PQR.

    name : one of PDB2PQR_SETS

    Raises ParameterError that names the first residue or atom that the force field does not have.
    """
    own_name = name.removeprefix(PDB2PQR)
    radii = np.empty(len(labels.names))
    ends = [*labels.residue_starts.tolist(), len(labels.names)]
    for residue, begin, end in zip(labels.residues, ends, ends[1:], strict=False):
        names = [_ATOMS.get(each, each) for each in map(str, labels.names[begin:end])]
        found = _template(own_name, residue.name, names)
        if found is None:
            raise ParameterError(f"{residue}: the radii {name} have no such residue; give radii of your own")
        missing = next((own for own in names if own not in found), None)
        if missing is not None:
            raise ParameterError(
                f"{residue}: the radii {name} have no atom {missing} of it; give radii of your own, or name the atoms "
                "as the PDB does"
            )
        radii[begin:end] = [found[own] for own in names]
    return radii


def _template(name: str, residue: str, atoms: Sequence[str]) -> dict[str, float] | None:
    """Choose the state of a residue that has the atoms, and as few others as possible; None for an unknown residue."""
    own = [end.format(state) for state in _STATES.get(residue, (residue,)) for end in _ENDS]
    states = [_table()[name][state] for state in own if state in _table()[name]]
    return min(states, key=lambda state: (sum(atom not in state for atom in atoms), len(state)), default=None)


@cache
def _table() -> dict[str, dict[str, dict[str, float]]]:
    """Radii, A, by set, residue and atom."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with open(shipped("data") / "pdb2pqr_radii.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            found.setdefault(row["set"], {}).setdefault(row["residue"], {})[row["atom"]] = float(row["radius"])
    return found
