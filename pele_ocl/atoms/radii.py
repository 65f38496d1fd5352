"""Sets of intrinsic GB radii and HCT scale factors, by element, bonds and residue names.

bondi (Bondi 1964), mbondi (Tsui and Case 2001), mbondi2 (Onufriev, Bashford and Case 2004) and mbondi3 (Nguyen, Roe and
Simmerling 2013) are assigned as in AMBER's tleap. mbondi_pb2 and mbondi_pb3 are mbondi with radii of chlorine, bromine
and iodine fitted to Poisson-Boltzmann energies with GAFF (Nunes, Vila-Vicosa and Costa 2019). `pele` and `openmm-obc`
use Tinker's rule for Born radii, as the tables of PELE and OpenMM do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..common.arguments import choice
from ..common.errors import InputError
from .chemistry import tidy_element
from .labels import Floats, Ints, Labels

BONDI_SETS = ("bondi", "mbondi", "mbondi2", "mbondi3", "mbondi_pb2", "mbondi_pb3")
TINKER_SETS = ("openmm-obc", "pele")
RADII_SETS = (*TINKER_SETS, *BONDI_SETS)
PDB2PQR = "pdb2pqr-"
PDB2PQR_SETS = (f"{PDB2PQR}amber", f"{PDB2PQR}charmm", f"{PDB2PQR}parse")  # for Poisson-Boltzmann only
FORMER_NAMES = {name.removeprefix(PDB2PQR): name for name in PDB2PQR_SETS}  # accepted until the next release

Strings = NDArray[np.str_]

# HCT scale factors (Hawkins, Cramer and Truhlar 1996) as in Amber; Tinker also has one for iron.
_SCALES = {"H": 0.85, "C": 0.72, "N": 0.79, "O": 0.85, "F": 0.88, "P": 0.86, "S": 0.96}
_TINKER_SCALES = {**_SCALES, "D": 0.85, "Fe": 0.88}
_OTHER_SCALE = 0.80

_BONDI = {"H": 1.2, "C": 1.7, "N": 1.55, "O": 1.5, "F": 1.5, "Si": 2.1, "P": 1.85, "S": 1.8, "Cl": 1.7}
_OTHER_BONDI = 1.5
# Radii of hydrogens by the element of the bonded atom.
_HYDROGENS: Mapping[str, Mapping[str, float]] = {
    "bondi": {},
    "mbondi": {"C": 1.3, "N": 1.3, "O": 0.8, "S": 0.8},
    "mbondi2": {"N": 1.3},
    "mbondi3": {"N": 1.3},
}
# Radii of halogens in the sets that are otherwise mbondi.
_HALOGENS: Mapping[str, Mapping[str, float]] = {
    "mbondi_pb2": {"Cl": 1.76, "Br": 1.97, "I": 2.09},
    "mbondi_pb3": {"Cl": 2.20, "Br": 2.04, "I": 2.19},
}
# Changes in mbondi3: guanidinium hydrogens of arginine and carboxylate oxygens, by residue and first letters of the
# atom names, and the oxygens of the C-terminus. AS4 and GL4 are the titratable acids of constant-pH simulations, which
# contain all their possible protons.
_GUANIDINIUM, _GUANIDINIUM_RADIUS = (("ARG",), ("HH", "HE")), 1.17
_CARBOXYLATES, _CARBOXYLATE_RADIUS = ((("ASP",), ("OD",)), (("GLU",), ("OE",))), 1.4
_TITRATED = ((("AS4",), ("OD",)), (("GL4",), ("OE",)))
_TERMINAL_OXYGEN = "OXT"

# Element: {number of bonds: radius}; None for all other numbers.
_TINKER_BY_BONDS: dict[str, dict[int | None, float]] = {
    "C": {None: 1.90, 3: 1.875, 2: 1.825},
    "N": {None: 1.7063, 4: 1.625, 1: 1.60},
    "O": {None: 1.535, 1: 1.48},
}
_TINKER_HYDROGEN, _TINKER_HYDROGEN_ON = 1.25, {"N": 1.15, "O": 1.05}
_TINKER = {
    "F": 1.47, "P": 1.87, "S": 1.775, "Fe": 2.00, "Li": 1.432, "Na": 1.992, "Mg": 1.70, "Si": 1.80, "Cl": 1.735,
    "K": 2.123, "Ca": 1.817, "Br": 1.90, "Rb": 2.26, "I": 2.10, "Cs": 2.507, "Ba": 2.188,
}  # fmt: skip
_OTHER_TINKER = 2.0
_OPENMM_NITROGEN = 1.706  # in place of Tinker's 1.7063


def radii_set(name: str, labels: Labels, bonds: Ints) -> tuple[Floats, Floats]:
    """Return the intrinsic radii (n,) A and HCT scale factors (n,) of a set.

    name : one of RADII_SETS
    bonds : (m, 2) all bonds, including those between residues

    Raises InputError for an unknown set, and if the radii depend on bonds and there are none.
    """
    name = gb_set(name)
    elements = elements_of(labels)
    if name != "bondi" and len(elements) > 1 and not len(bonds):
        raise InputError(f"the GB radii {name} need bonds, which these atoms do not have; bondi does not need them")
    if name in TINKER_SETS:
        radii, scales = element_rule(elements, bonds)
        if name == "openmm-obc":
            radii[(elements == "N") & (radii == _TINKER_BY_BONDS["N"][None])] = _OPENMM_NITROGEN
        return radii, scales
    halogens = _HALOGENS.get(name)
    radii = _looked_up(elements, {**_BONDI, **(halogens or {})}, _OTHER_BONDI)
    for neighbour, radius in _HYDROGENS["mbondi" if halogens else name].items():
        radii[hydrogens_on(elements, bonds, neighbour)] = radius
    if name == "mbondi3":
        _modify_third(radii, labels, elements, bonds)
    return radii, _looked_up(elements, _SCALES, _OTHER_SCALE)


def tidy_set(name: str) -> str:
    """Return the current name of a set. The sets of PDB2PQR were formerly named without a prefix."""
    return FORMER_NAMES.get(name, name)


def gb_set(name: str, what: str = "the set of GB radii") -> str:
    """Return the current name of a set of GB radii. Raises InputError for other names; what : its name in messages"""
    name = tidy_set(name)
    if name in PDB2PQR_SETS:
        raise InputError(no_scales_note(name))
    choice(what, name, RADII_SETS)
    return name


def no_scales_note(name: str) -> str:
    """Explain why a set of PDB2PQR cannot be used for GB."""
    other = "; OpenMM's GB radii, once named amber, are openmm-obc" if name == PDB2PQR_SETS[0] else ""
    return f"the radii {name} are for Poisson-Boltzmann and have no GB scales; choose {' or '.join(RADII_SETS)}{other}"


def goes_by_names(name: str | None) -> bool:
    """Return whether a set is one of PDB2PQR's, which are assigned by names, without bonds, and have no GB scales."""
    return name is not None and tidy_set(name) in PDB2PQR_SETS


def hct_scale(symbol: str) -> float:
    """Return the HCT scale factor of an element.

    H 0.85, C 0.72, N 0.79, O 0.85, F 0.88, P 0.86, S 0.96, Fe 0.88, others 0.80.
    """
    return _TINKER_SCALES.get(tidy_element(symbol), _OTHER_SCALE)


def element_rule(elements: Sequence[str] | NDArray[np.str_], bonds: Ints) -> tuple[Floats, Floats]:
    """Return radii (n,) A and HCT scale factors (n,) by element and number of bonds, as assigned by Tinker.

    elements : (n,) capitalized element symbols
    bonds : (m, 2) all bonds, including those between residues
    """
    symbols = np.asarray(elements, np.str_)
    n_bonds = np.bincount(bonds.ravel(), minlength=len(symbols))
    radii = _looked_up(symbols, _TINKER, _OTHER_TINKER)
    for element, by_bonds in _TINKER_BY_BONDS.items():
        mine = symbols == element
        for count, radius in by_bonds.items():
            radii[mine if count is None else mine & (n_bonds == count)] = radius
    radii[symbols == "H"] = _TINKER_HYDROGEN
    for neighbour, radius in _TINKER_HYDROGEN_ON.items():
        radii[hydrogens_on(symbols, bonds, neighbour)] = radius
    return radii, _looked_up(symbols, _TINKER_SCALES, _OTHER_SCALE)


def elements_of(labels: Labels) -> Strings:
    """Return the capitalized element symbols (n,), with H for deuterium and tritium."""
    symbols = np.char.capitalize(np.char.strip(labels.elements))
    return np.where(np.isin(symbols, ("D", "T")), "H", symbols)


def bonds_both_ways(bonds: Ints) -> Ints:
    """Return the bonds in both directions, (2 m, 2)."""
    return np.concatenate([bonds, bonds[:, ::-1]]).reshape(-1, 2)


def hydrogens_on(elements: Strings, bonds: Ints, neighbour: str) -> Ints:
    """Return the indices of the hydrogens bonded to an atom of the element `neighbour`."""
    ends = bonds_both_ways(bonds)
    found: Ints = ends[(elements[ends[:, 0]] == "H") & (elements[ends[:, 1]] == neighbour), 0]
    return found


def _looked_up(elements: Strings, values: Mapping[str, float], other: float) -> Floats:
    unique, places = np.unique(elements, return_inverse=True)
    return np.array([values.get(str(symbol), other) for symbol in unique], np.float64)[places]


def _modify_third(radii: Floats, labels: Labels, elements: Strings, bonds: Ints) -> None:
    """Change the radii of mbondi2 to those of mbondi3, in place."""
    names = np.char.lstrip(labels.names, "0123456789")  # 1HH1 is HH11
    radii[_named(labels, names, *_GUANIDINIUM)] = _GUANIDINIUM_RADIUS
    for of in _CARBOXYLATES:  # except protonated ones, for which AMBER has other residue names
        mine = _named(labels, names, *of)
        mine &= ~np.isin(labels.residue_index, labels.residue_index[_hydroxyls(elements, bonds, mine)])
        radii[mine] = _CARBOXYLATE_RADIUS
    for of in _TITRATED:
        radii[_named(labels, names, *of)] = _CARBOXYLATE_RADIUS
    for oxygen in np.flatnonzero(names == _TERMINAL_OXYGEN):
        pair = (names == "O") & (labels.residue_index == labels.residue_index[oxygen])
        radii[pair] = radii[oxygen] = _CARBOXYLATE_RADIUS


def _named(labels: Labels, names: Strings, residues: Sequence[str], begins: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask of the atoms in these residues by the first letters of `names` (n,), without leading digits."""
    found = np.any([np.char.startswith(names, begin) for begin in begins], axis=0)
    mine: NDArray[np.bool_] = np.isin(labels.residue_names, residues) & found
    return mine


def _hydroxyls(elements: Strings, bonds: Ints, chosen: NDArray[np.bool_]) -> Ints:
    """Return the indices of the chosen atoms that are bonded to a hydrogen."""
    ends = bonds_both_ways(bonds)
    found: Ints = ends[chosen[ends[:, 0]] & (elements[ends[:, 1]] == "H"), 0]
    return found
