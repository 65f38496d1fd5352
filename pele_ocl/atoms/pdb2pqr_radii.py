"""Radii of PDB2PQR's force fields by residue and atom names, from data/pdb2pqr_radii.csv."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache

import numpy as np

from ..common.errors import ParameterError
from ..common.installation import shipped
from .labels import Floats, Labels
from .radii import PDB2PQR

# PDB2PQR's names of protonation and disulphide states, and of other residues, by residue name.
_STATES = {
    "HIS": ("HID", "HIE", "HIP"), "HSD": ("HID",), "HSE": ("HIE",), "HSP": ("HIP",), "CYS": ("CYS", "CYX", "CYM"),
    "ASP": ("ASP", "ASH"), "GLU": ("GLU", "GLH"), "LYS": ("LYS", "LYN"), "TYR": ("TYR", "TYM"), "HOH": ("WAT",),
    "A": ("RA",), "C": ("RC",), "G": ("RG",), "U": ("RU",),
}  # fmt: skip
_ENDS = ("{}", "N{}", "C{}", "{}5", "{}3", "{}N")  # prefixes and suffixes of terminal residues in PDB2PQR
_ATOMS = {"HO5'": "H5T", "HO3'": "H3T", "OP1": "O1P", "OP2": "O2P"}


def radii_by_names(name: str, labels: Labels) -> Floats:
    """Return the radii (n,) A of a force field of PDB2PQR. name : one of PDB2PQR_SETS

    Raises ParameterError for the first residue or atom that the force field does not contain.
    """
    own_name = name.removeprefix(PDB2PQR)
    radii = np.empty(len(labels.names))
    ends = [*labels.residue_starts.tolist(), len(labels.names)]
    for residue, begin, end in zip(labels.residues, ends, ends[1:], strict=False):
        names = [_ATOMS.get(each, each) for each in map(str, labels.names[begin:end])]
        found = _template(own_name, residue.name, names)
        if found is None:
            raise ParameterError(f"{residue}: the radii {name} do not include this residue; give your own radii")
        missing = next((own for own in names if own not in found), None)
        if missing is not None:
            raise ParameterError(
                f"{residue}: the radii {name} have no atom {missing} of it; give your own radii, or use the atom "
                "names of the PDB"
            )
        radii[begin:end] = [found[own] for own in names]
    return radii


def _template(name: str, residue: str, atoms: Sequence[str]) -> dict[str, float] | None:
    """Choose the state of a residue that contains the atoms and the fewest others; None for an unknown residue."""
    own = [end.format(state) for state in _STATES.get(residue, (residue,)) for end in _ENDS]
    states = [_table()[name][state] for state in own if state in _table()[name]]
    return min(states, key=lambda state: (sum(atom not in state for atom in atoms), len(state)), default=None)


@cache
def _table() -> dict[str, dict[str, dict[str, float]]]:
    """Read the radii, A, by set, residue and atom."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with open(shipped("data") / "pdb2pqr_radii.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            found.setdefault(row["set"], {}).setdefault(row["residue"], {})[row["atom"]] = float(row["radius"])
    return found
