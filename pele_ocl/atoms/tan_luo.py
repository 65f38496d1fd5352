"""Radii of Tan, Yang and Luo for the Poisson-Boltzmann equation: `radiopt = 1` in pbsa.

They were fitted to charging free energies in TIP3P water (J. Phys. Chem. B 110, 18680 (2006)), for the residues,
nucleotides and ions of AMBER. The radius of an atom depends on its type, its hydrogens and the charge of its group;
hydrogens have a radius of 0. Values and rules are those of pbsa in AmberTools. Types that ff14SB added later, by
splitting others for its torsions, are treated as the original types, with a note.
"""

from __future__ import annotations

import numpy as np

from ..common.errors import InputError
from .atoms import Atoms
from .labels import Floats
from .radii import bonds_both_ways

_AROMATIC = ("CA", "CB", "CC", "CK", "CM", "CN", "CQ", "CR", "CV", "CW", "C*")
# Radii of types with a single radius, A.
_RADII = {
    "N ": 1.70, "O ": 1.57, "O2": 1.25, "OS": 1.30, "OH": 1.925, "OW": 1.85, "Li": 1.481, "Na": 1.875, "IP": 1.875,
    "K ": 2.288, "Rb": 2.448, "Cs": 2.712, "F ": 1.223, "Cl": 1.516, "IM": 1.815, "Br": 1.745, "I ": 1.870,
    "MG": 1.515, "C0": 2.126, "Zn": 1.469,
}  # fmt: skip
_SPLIT_FROM = {"2C": "CT", "3C": "CT", "C8": "CT", "CO": "C "}  # ff14SB types with the same Lennard-Jones parameters
_OF_GAFF = tuple("hcnopfbis")  # atoms whose types begin with these letters keep their radii
_LEAST_CHARGE = 1e-4  # minimum charge contributed by hydrogens, e


def tan_luo_radii(atoms: Atoms) -> Floats:
    """Return the radii (n,) A of Tan, Yang and Luo, 0 for hydrogens. Atoms with GAFF types keep their GB radii.

    Raises InputError for atoms without AMBER types or labels, and for types without a radius.
    """
    if atoms.types is None or atoms.type_family != "amber" or atoms.labels is None or atoms.gb_radii is None:
        raise InputError("radii of Tan and Luo need the atom types of an AMBER topology, which these atoms do not have")
    types = [_SPLIT_FROM.get(name, f"{name:<2}"[:2]) for name in atoms.types.tolist()]
    is_hydrogen = np.array([name[0] in "Hh" for name in types])
    ends = bonds_both_ways(atoms.bond_pairs)
    to_hydrogen = ends[~is_hydrogen[ends[:, 0]] & is_hydrogen[ends[:, 1]]]
    n_hydrogens = np.bincount(to_hydrogen[:, 0], minlength=len(atoms))
    united = np.where(is_hydrogen, 0, atoms.charges)  # charge of an atom and its hydrogens
    np.add.at(united, to_hydrogen[:, 0], atoms.charges[to_hydrogen[:, 1]])
    groups = united.copy()  # including its heavy neighbours
    between = ends[~is_hydrogen[ends].any(axis=1)]
    np.add.at(groups, between[:, 0], united[between[:, 1]])
    radii = np.zeros(len(atoms))
    for a in np.flatnonzero(~is_hydrogen):
        residue, name = str(atoms.labels.residue_names[a]), str(atoms.labels.names[a])
        bears = abs(united[a] - atoms.charges[a]) > _LEAST_CHARGE
        radii[a] = _radius(types[a], residue, name, float(groups[a]), bool(bears), int(n_hydrogens[a]))
    of_gaff = np.array([name[0] in _OF_GAFF for name in types])
    radii[of_gaff] = atoms.gb_radii[of_gaff]
    for missing in np.flatnonzero((radii == 0) & ~is_hydrogen).tolist():
        raise InputError(
            f"{atoms.labels.atom(missing)} has the type {atoms.types[missing]}, without a radius of Tan and Luo; "
            "use the topology's radii, radiopt=0"
        )
    return radii


def tan_luo_notes(atoms: Atoms) -> tuple[str, ...]:
    """Return a note on types that are treated as others, if there are any."""
    found = [] if atoms.types is None else sorted(set(_SPLIT_FROM) & set(atoms.types.tolist()))
    if not found:
        return ()
    named = ", ".join(f"{name} as {_SPLIT_FROM[name].strip()}" for name in found)
    return (
        "Tan and Luo have no radii for types of ff14SB, which are treated as the types from which they "
        f"were split: {named}",
    )


def _radius(kind: str, residue: str, name: str, group: float, bears: bool, n_hydrogens: int) -> float:
    """Return the radius of a heavy atom, A; 0 if unknown. group : group charge, e; bears : has charged hydrogens"""
    if kind in ("CT", "CX"):
        return (2.50 if group > 0.9 else 2.10 if group < -0.9 else 2.25) if bears else 2.00
    if residue[:3] == "HIP" and kind in ("CW", "CR", "NA"):
        return 2.65
    if kind in _AROMATIC:
        return 2.15 if bears else 1.85 if group > 0.5 else 1.75
    if kind == "C ":
        return 1.65 if group < -0.5 else 2.00
    if kind in ("NB", "NC", "N*"):
        return 1.80 if group > 0.5 else 1.70
    if kind == "NA":
        return 2.15 if group > 0.5 else 2.10
    if kind in ("N ", "N2", "N3") and n_hydrogens:
        if group < 0 or group > 0.8:
            return 1.80 if group < 0 else 2.50
        return 1.95 if n_hydrogens == 1 else 2.10
    if kind == "OH" and (residue[:3] in ("SER", "THR") or name[:2] == "O5"):
        return 1.79
    if kind == "OS" and name[:2] == "O4":
        return 1.25
    if kind[0] == "S":
        return 2.30 if kind == "SH" and bears else 1.45 if group < -0.5 else 2.00
    return 1.95 if kind[0] == "P" else _RADII.get(kind, 0.0)
