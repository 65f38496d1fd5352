"""OBC radii and scales from the element and the bonds of each atom, for atoms that no table names.

The rule of Tinker's Born radius assignment, from which PELE's own tables were generated. Radii in A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from ..chemistry import hct_scale

# Element: {bonds: radius}, None for any other number of bonds.
_BY_BONDS: dict[str, dict[int | None, float]] = {
    "C": {None: 1.90, 3: 1.875, 2: 1.825},
    "N": {None: 1.7063, 4: 1.625, 1: 1.60},
    "O": {None: 1.535, 1: 1.48},
}
_HYDROGEN, _HYDROGEN_ON = 1.25, {"N": 1.15, "O": 1.05}
_RADII = {
    "F": 1.47, "P": 1.87, "S": 1.775, "Fe": 2.00, "Li": 1.432, "Na": 1.992, "Mg": 1.70, "Si": 1.80, "Cl": 1.735,
    "K": 2.123, "Ca": 1.817, "Br": 1.90, "Rb": 2.26, "I": 2.10, "Cs": 2.507, "Ba": 2.188,
}  # fmt: skip
_OTHER_RADIUS = 2.0


def element_rule(elements: Sequence[str] | NDArray[np.str_], bonds: Ints) -> tuple[Floats, Floats]:
    """Radius (n,) in A and HCT scale (n,) of atoms by element and number of bonds.

    elements : (n,) symbols, capitalised
    bonds : (m, 2) all bonds, those between residues too
    """
    symbols = np.asarray(elements, np.str_)
    n_bonds = np.bincount(bonds.ravel(), minlength=len(symbols))
    radii = np.empty(len(symbols))
    scales = np.empty(len(symbols))
    for element in np.unique(symbols):
        mine = symbols == element
        radii[mine] = _RADII.get(str(element), _OTHER_RADIUS)
        scales[mine] = hct_scale(str(element))
        for count, radius in _BY_BONDS.get(str(element), {}).items():
            radii[mine if count is None else mine & (n_bonds == count)] = radius
    radii[symbols == "H"] = _HYDROGEN
    for i, j in (bonds.T, bonds.T[::-1]):
        for neighbour, radius in _HYDROGEN_ON.items():
            radii[i[(symbols[i] == "H") & (symbols[j] == neighbour)]] = radius
    return radii, scales
