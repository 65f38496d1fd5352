"""Maps for tests: small files in the formats of other programs, a skew grid, and differences of maps."""

from __future__ import annotations

import numpy as np

from pele_ocl.atoms import Atoms
from pele_ocl.formats import MAPS
from pele_ocl.grid import Grid, Map

SUFFIXES = list(MAPS)
SHAPES = [(4, 3, 2), (1, 1, 1), (1, 1, 7), (7, 1, 1), (5, 2, 13), (17, 3, 5), (2, 6, 12), (33, 9, 20)]

# Digits that each format keeps: of values, by the largest; of lengths, A.
RTOL = {".dx": 6e-8, ".dx.gz": 6e-8, ".cube": 6e-6, ".cub": 6e-6, ".mrc": 6e-8, ".ccp4": 6e-8, ".map": 6e-8, ".h5": 0}
ATOL_A = {
    ".dx": 1e-10,
    ".dx.gz": 1e-10,
    ".cube": 3e-7,
    ".cub": 3e-7,
    ".mrc": 3e-5,
    ".ccp4": 3e-5,
    ".map": 3e-5,
    ".h5": 0,
}


def relative(values, expected) -> float:
    """Return the difference relative to the expected values, both by norm."""
    return float(np.linalg.norm(values.astype(np.float64) - expected) / np.linalg.norm(expected))


def odd_grid_on(atoms: Atoms) -> Grid:
    """Return a grid with unequal spacings, odd shape and origin, and atoms of ubiquitin beyond its edges."""
    return Grid(atoms.positions.mean(axis=0) - (13.07, 14.2, 11.5), (1.1, 0.9, 1.3), (25, 33, 17))


def some_map(shape=(4, 3, 2), seed=0, dtype=np.float32, **facts) -> Map:
    """Return a map with values of all magnitudes, on unequal spacings from an odd origin."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, shape[::-1]) * 10.0 ** rng.integers(-6, 4, shape[::-1])
    grid = Grid((-13.257, 7.1234, 101.75), (0.5, 0.7, 1.3), shape)
    return Map(grid, values.astype(dtype), **({"unit": "hartree/e", "title": "Potential of five charges"} | facts))


def assert_same(found: Map, wanted: Map, suffix: str) -> None:
    assert found.grid.shape == wanted.grid.shape
    np.testing.assert_allclose(found.grid.origin, wanted.grid.origin, rtol=0, atol=ATOL_A[suffix])
    np.testing.assert_allclose(found.grid.spacing, wanted.grid.spacing, rtol=0, atol=ATOL_A[suffix])
    np.testing.assert_allclose(found.values, wanted.values, rtol=RTOL[suffix])
    assert (found.unit, found.title, found.temperature) == (wanted.unit, wanted.title, wanted.temperature)
    assert found.values.flags.c_contiguous


VMD_DX = """# Data calculated by the VMD volmap function
object 1 class gridpositions counts 2 1 3
origin -1.5 2.25 1e1
delta 0.5 0 0
delta 0 1.0 -0
delta 0 0 2
object 2 class gridconnections counts 2 1 3
object 3 class array type double rank 0 items 6 data follows
1 2 3
4 5 6

object "coulomb potential by VMD" class field
"""
CUBE = """title
comment
    1    1.000000    2.000000    3.000000
    2    0.500000    0.000000    0.000000
    1    0.000000    1.000000    0.000000
    3    0.000000    0.000000    2.000000
    8    8.000000    0.000000    0.000000    0.000000
  1.00000E+00  2.00000E+00  3.00000E+00
  4.00000E+00  5.00000E+00  6.00000E+00
"""
