"""LCPO surface-area parameters (Weiser, Shenkin and Still, J. Comput. Chem. 20, 217 (1999)) of atoms.

Atoms with Amber types (Atoms.type_family) are assigned by Amber's rules, others by element, number of heavy neighbours
and hybridization. The parameters of fluorine and magnesium are not in the paper; they come from AmberTools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..common.errors import InputError
from ..common.notes import Note
from .labels import Floats, Ints
from .radii import bonds_both_ways, elements_of

if TYPE_CHECKING:
    from .atoms import Atoms

_Found: TypeAlias = "tuple[Floats, list[tuple[int, str]]]"

# Radius (A, without probe), P1, P2, P3 and P4 (1/A^2) by element, hybridization and number of heavy neighbours.
PARAMETERS = {
    "C sp3 1": (1.7, 0.77887, -0.28063, -0.0012968, 0.00039328),
    "C sp3 2": (1.7, 0.56482, -0.19608, -0.0010219, 0.0002658),
    "C sp3 3": (1.7, 0.23348, -0.072627, -0.00020079, 0.00007967),
    "C sp3 4": (1.7, 0.0, 0.0, 0.0, 0.0),
    "C sp2 2": (1.7, 0.51245, -0.15966, -0.00019781, 0.00016392),
    "C sp2 3": (1.7, 0.070344, -0.019015, -0.000022009, 0.000016875),
    "O sp3 1": (1.6, 0.77914, -0.25262, -0.0016056, 0.00035071),
    "O sp3 2": (1.6, 0.49392, -0.16038, -0.00015512, 0.00016453),
    "O sp2 1": (1.6, 0.68563, -0.1868, -0.00135573, 0.00023743),
    "O carboxylate 1": (1.6, 0.88857, -0.33421, -0.0018683, 0.00049372),
    "N sp3 1": (1.65, 0.078602, -0.29198, -0.0006537, 0.00036247),
    "N sp3 2": (1.65, 0.22599, -0.036648, -0.0012297, 0.000080038),
    "N sp3 3": (1.65, 0.051481, -0.012603, -0.00032006, 0.000024774),
    "N sp2 1": (1.65, 0.73511, -0.22116, -0.00089148, 0.0002523),
    "N sp2 2": (1.65, 0.41102, -0.12254, -0.000075448, 0.00011804),
    "N sp2 3": (1.65, 0.062577, -0.017874, -0.00008312, 0.000019849),
    "S 1": (1.9, 0.7722, -0.26393, 0.0010629, 0.0002179),
    "S 2": (1.9, 0.54581, -0.19477, -0.0012873, 0.00029247),
    "P 3": (1.9, 0.3865, -0.18249, -0.0036598, 0.0004264),
    "P 4": (1.9, 0.03873, -0.0089339, 0.0000083582, 0.0000030381),
    "Cl": (1.8, 0.98318, -0.40437, 0.00011249, 0.00049901),
    "F": (1.47, 0.68563, -0.1868, -0.00135573, 0.00023743),
    "Mg": (1.18, 0.49392, -0.16038, -0.00015512, 0.00016453),
    "none": (0.0, 0.0, 0.0, 0.0, 0.0),
}
# Keys that are followed by the number of heavy neighbours.
COUNTED = frozenset(key[:-2] for key in PARAMETERS if key[-1].isdigit())


# Key of the carbon used for atoms without parameters.
_CARBON = "C sp2 2"
_NAMED = 4  # maximum number of atoms in a note


def lcpo_parameters(atoms: Atoms, unknown: str = "carbon", rule: str = "chemistry") -> Floats:
    """Return the radius (A, without probe), P1, P2, P3 and P4 (1/A^2) of each atom, (n, 5).

    All are 0 for hydrogens and virtual sites, which have no area.

    unknown : "carbon" assigns carbon's parameters to atoms without LCPO parameters, as AMBER's programs do, and the
        first entry of the same kind to atoms with an unusual number of heavy neighbours; "refuse" raises InputError in
        both cases
    rule : "chemistry" uses elements and bonds, or the atom types of AMBER topologies. "amber" uses the first two
        letters of the types like cpptraj: unknown types, including chlorine, are treated as carbon, and atoms without
        bonds have no area. Atoms without types are always assigned by "chemistry"

    Raises InputError for atoms without labels or bonds.
    """
    parameters, absent = _parameters(atoms, rule)
    if absent and unknown == "refuse":
        raise InputError(
            f"LCPO has no parameters for {atoms.describe(absent[0][0])}: {absent[0][1]}; leave it out, use those of "
            "carbon (lcpo_unknown='carbon'), or choose the surface ace or none"
        )
    return parameters


def lcpo_notes(atoms: Atoms, rule: str = "chemistry") -> tuple[str, ...]:
    """Return a note on atoms without LCPO parameters, if there are any and LCPO is applicable."""
    if atoms.labels is None or (len(atoms) > 1 and not len(atoms.bond_pairs)):
        return ()
    absent = _parameters(atoms, rule)[1]
    if not absent:
        return ()
    named = ", ".join(f"{atoms.labels.atom(i)} ({what})" for i, what in absent[:_NAMED])
    more = f" and {len(absent) - _NAMED:,} more" if len(absent) > _NAMED else ""
    return (
        Note(
            f"LCPO has no parameters for {named}{more}: those of carbon are used, as in AMBER's programs; refuse such "
            "atoms with `lcpo_unknown='refuse'`",
            code="lcpo_carbon",
        ),
    )


# Cache of parameters by atoms and rule, because a plan checks the surface before computing it.
_FOUND: WeakKeyDictionary[Atoms, dict[str, _Found]] = WeakKeyDictionary()


def _parameters(atoms: Atoms, rule: str) -> _Found:
    """Return the parameters (n, 5), and the index and description of each atom without parameters."""
    own = _FOUND.setdefault(atoms, {})
    if rule not in own:
        own[rule] = _find(atoms, rule)
        own[rule][0].flags.writeable = False
    return own[rule]


def _find(atoms: Atoms, rule: str) -> _Found:
    if atoms.labels is None:
        raise InputError("LCPO surfaces need elements, which these atoms do not have; choose the surface ace or none")
    elements, bonds, is_site = elements_of(atoms.labels), atoms.bond_pairs, atoms.is_site
    if len(atoms) > 1 and not len(bonds):
        raise InputError("LCPO surfaces need bonds, which these atoms do not have; choose the surface ace or none")
    bonds = bonds[~is_site[bonds].any(axis=1)]
    ends = bonds_both_ways(bonds)
    n_bonds = np.bincount(ends[:, 0], minlength=len(atoms))
    n_heavy = np.bincount(ends[elements[ends[:, 1]] != "H", 0], minlength=len(atoms))
    has_area = (elements != "H") & ~is_site
    counts = n_bonds.tolist(), n_heavy.tolist()
    by_cpptraj = rule == "amber" and atoms.types is not None
    keys: list[str]
    if atoms.types is not None and (by_cpptraj or atoms.type_family == "amber"):
        has_area &= (n_bonds > 0) | (not by_cpptraj)
        rows = list(zip(elements.tolist(), atoms.types.tolist(), *counts, strict=True))
        found = {row: _key_of_cpptraj(*row) if by_cpptraj else _key_by_type(*row) for row in set(rows)}
        keys = [found[row] for row in rows]
    else:
        keys = [_key(*each) for each in zip(_shapes_by_bonds(elements, n_bonds, ends), counts[1], strict=True)]
    kinds = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    kind = np.array([kinds[key] for key in keys])
    parameters = np.array([PARAMETERS.get(key, (0.0,) * 5) for key in kinds])[kind]
    parameters[~has_area] = 0
    is_absent = np.array([key not in PARAMETERS for key in kinds])[kind] & has_area
    absent = []
    for i in np.flatnonzero(is_absent).tolist():
        key = keys[i]
        type_ = f"type {atoms.types[i]}, " if by_cpptraj and atoms.types is not None else ""
        absent.append((i, f"{type_}{elements[i]}, {n_bonds[i]} bonds, {n_heavy[i]} of them to heavy atoms"))
        shape = key[:-2]
        if by_cpptraj:
            key = _UNUSUAL.get(shape[:1], _CARBON) if shape in COUNTED else _CARBON
        else:
            key = next((of for of in PARAMETERS if shape in COUNTED and of[:-2] == shape), _CARBON)
        parameters[i] = PARAMETERS[key]
    return parameters, absent


# Keys that AMBER's programs use for an unusual number of heavy neighbours, by element.
_UNUSUAL = {"C": "C sp3 1", "N": "N sp3 1", "O": "O sp3 1", "P": "P 3"}


def _key_of_cpptraj(element: str, amber_type: str, n_bonds: int, n_heavy: int) -> str:
    """Return the key that cpptraj's `surf` command would use, which may not be in PARAMETERS."""
    two = amber_type[:2].upper()
    if element == "C":
        return f"C sp3 {n_heavy}" if n_bonds == 4 else f"C sp2 {n_heavy}"
    if element == "O":
        return {"O": "O sp2 1", "O2": "O carboxylate 1"}.get(two, f"O sp3 {n_heavy}")
    if element == "N":
        return f"N sp3 {n_heavy}" if two == "N3" else f"N sp2 {n_heavy}"
    if element == "S":
        return "S 1" if two == "SH" else "S 2"
    if element == "P":
        return f"P {n_heavy}"
    if two[:1] == "Z":
        return "none"
    return "Mg" if two == "MG" else "F" if two[:1] == "F" else "unknown"


def _key_by_type(element: str, amber_type: str, n_bonds: int, n_heavy: int) -> str:
    """Return the key by sander's rules, which do not distinguish GAFF's o from O; it may not be in PARAMETERS."""
    name = amber_type.upper()
    if element == "C":
        return _key("C sp3" if n_bonds == 4 else "C sp2", n_heavy)
    if element == "O":
        return {"O": "O sp2 1", "O2": "O carboxylate 1"}.get(name) or _key("O sp3", n_heavy)
    if element == "N":
        return _key("N sp3" if name == "N3" else "N sp2", n_heavy)
    if element == "S":
        return "S 1" if name == "SH" else "S 2"
    return _key(element, n_heavy)


def _key(shape: str, n_heavy: int) -> str:
    """Return the key of a shape, with the number of heavy neighbours if the shape has one."""
    return f"{shape} {n_heavy}" if shape in COUNTED else shape


def _shapes_by_bonds(elements: NDArray[np.str_], n_bonds: NDArray[np.intp], ends: Ints) -> list[str]:
    """Return the shape of each atom, the first part of its key, by its bonds."""
    shapes = elements.astype(np.dtype("U16"))
    first, second = ends.T
    is_carbon, is_nitrogen, is_oxygen = (elements == symbol for symbol in "CNO")
    planar = is_carbon & (n_bonds == 3)
    shapes[is_carbon] = np.where(n_bonds[is_carbon] == 4, "C sp3", "C sp2")
    conjugated = np.zeros(len(elements), bool)
    conjugated[first[planar[second]]] = True
    shapes[is_nitrogen & np.isin(n_bonds, (3, 4))] = "N sp3"
    shapes[is_nitrogen & ((n_bonds == 2) | ((n_bonds == 3) & conjugated))] = "N sp2"
    terminal = is_oxygen & (n_bonds == 1)
    shapes[is_oxygen & (n_bonds == 2)] = "O sp3"
    shapes[terminal] = "O sp2"
    # Two terminal oxygens on one atom: a carboxylate, or a phosphate, which AMBER treats in the same way.
    partners = np.bincount(second[terminal[first]], minlength=len(elements))
    shapes[first[terminal[first] & (partners[second] > 1)]] = "O carboxylate"
    return [str(shape) for shape in shapes]
