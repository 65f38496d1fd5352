"""Tolerances of the test suite, in one place: results' are in pele_ocl/bench/bounds.py.

Tighten freely; loosen only with the cause.
"""

import numpy as np

from pele_ocl.bench.bounds import BORN_RADIUS, ENERGY, GRADIENT, MAP, born_radius_bound

__all__ = [
    "BORN_RADIUS", "DIFFERENCES", "ENERGY", "GRADIENT", "MAP", "OPENMM_ENERGY", "SOFT_ROOT", "TWIN",
    "born_radius_bound",
]  # fmt: skip

# Relative, of a whole molecule's energy, against OpenMM's.
OPENMM_ENERGY = 1e-9

# Relative, by norm: of one function's values against the same function written portably.
TWIN = {"float64": 1e-14, "float32": 3e-7}

# Relative, worst: the reciprocal root without the special-function unit, all of it rounding.
SOFT_ROOT = 3e-7

# Relative, by norm: a gradient against central differences of the same energy in float64.
DIFFERENCES = 1e-7

# Relative to the parts that are added up, of a pair in float32, besides what follows from its coordinates; and by how
# much two of them may be wrong together, A: in `energy` the last digits of offsets up to 16 A from a tile's origin, in
# `nonbond` two fixed-point steps, 2^-30 of how far a molecule that reaches so far from its middle may yet reach:
# a quarter and 32 A more, up to the next power of two.
FLOAT32_PARTS = 5e-6
COORDINATE = {
    "energy": lambda reach: 2e-6,
    "nonbond": lambda reach: 2 * 2.0 ** np.ceil(np.log2(1.25 * reach + 32)) / 2**30,
}
