"""Bounds of the errors of results, relative to the float64 reference: demanded by tests, and by timing tables.

Tighten freely; loosen only with the cause.
"""

from __future__ import annotations

from ..solvent.accuracy import DEFAULT

Bounds = dict[str, float]  # by precision

# The worst of all atoms, where the terms of an atom are added up in many partial sums.
BORN_RADIUS: Bounds = {"float64": 1e-10, "float32": 1e-5}

# Of a whole molecule's energy, and of one term of it, in which large parts may cancel.
ENERGY: Bounds = {"float64": 1e-11, "float32": 2e-6}
TERM: Bounds = {"float64": 1e-9, "float32": 1e-4}

# By norm: a gradient; a potential map and its field.
GRADIENT: Bounds = {"float64": 1e-9, "float32": 5e-6}
MAP: Bounds = {"float64": 1e-12, "float32": 1e-6}

# float32 sums of n terms in one number lose digits with n: 3e-6, 2e-5 and 5e-5 of 96, 1,231 and 4,427 terms, measured
# on the shipped structures with room.
FEW_TERMS, ERROR_OF_FEW, GROWTH = 96, 3e-6, 0.73


def born_radius_bound(sums: int | None, precision: str, n_atoms: int, approximates: bool = False) -> float:
    """Return the bound of the worst Born radius by a solvent variant.

    sums, approximates : as the variant declares them (variant.Variant)
    """
    if approximates:
        return max(BORN_RADIUS[precision], DEFAULT)
    if precision == "float64" or sums is None:
        return BORN_RADIUS[precision]
    return float(ERROR_OF_FEW * max(1.0, n_atoms / sums / FEW_TERMS) ** GROWTH)
