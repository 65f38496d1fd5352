"""How exact is exact: every tolerance of the test suite, in one place. Tighten freely; loosen only with the cause."""

# Relative, worst atom, against the float64 reference. `sequential` and `outer` add all terms of an atom to one number,
# which float32 pays for on large systems: their bound is by number of atoms, measured on the shipped structures.
BORN_RADIUS = {"float64": 1e-10, "float32": 1e-5}
ONE_SUM_FLOAT32 = {96: 3e-6, 1231: 2e-5, 4427: 5e-5}

# Relative, of a whole molecule's energy.
ENERGY = {"float64": 1e-11, "float32": 2e-6}
OPENMM_ENERGY = 1e-9

# Relative, by norm: of one function's values against the same function written portably.
TWIN = {"float64": 1e-14, "float32": 3e-7}

# Relative, worst: the reciprocal root without the special-function unit, all of it rounding.

# Relative, by norm, against the float64 reference: a potential map, and its field.
MAP = {"float64": 1e-12, "float32": 1e-6}

# Relative, by norm: a gradient against the float64 reference.
GRADIENT = {"float64": 1e-9, "float32": 5e-6}

# Relative, worst: the reciprocal root without the special-function unit, all of it rounding.
SOFT_ROOT = 3e-7

# Relative, by norm, against the float64 reference: a potential map, and its field.
MAP = {"float64": 1e-12, "float32": 1e-6}

# Relative, by norm: a gradient against central differences of the same energy in float64.
DIFFERENCES = 1e-7
