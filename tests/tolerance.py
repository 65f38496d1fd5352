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

# Relative to the parts that are added up, of a pair in float32, besides what follows from its coordinates; and by how
# much two of them may be wrong together, A: in `energy` the last digits of offsets up to 16 A from a tile's origin, in
# `nonbond` two fixed-point steps of a molecule that reaches so far from its middle.
FLOAT32_PARTS = 5e-6
COORDINATE = {"energy": lambda reach: 2e-6, "nonbond": lambda reach: 2 * 2 * reach / 2**30}
