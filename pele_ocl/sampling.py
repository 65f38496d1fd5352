"""Interpolation of maps."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .atoms import Floats
from .common import arguments
from .common.errors import InputError
from .grid import Map, require_map

_EDGE = 1e-6  # tolerance at the border, in units of the spacing


def sample(map_: Map, positions: ArrayLike, outside: Literal["raise", "nan"] = "raise") -> Floats:
    """Interpolate a map trilinearly at positions.

    positions : (n, 3) A
    outside : for positions outside the map, "raise" an InputError with the first one, or return "nan"

    Returns (n,), in the unit of the map.

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
    >>> slope = pele_ocl.Map(grid, np.indices((2, 2, 2))[2].astype(float))  # it grows along x
    >>> pele_ocl.sample(slope, [[0.25, 0.5, 0.5]]).tolist()
    [0.25]
    """
    require_map(map_)
    where = arguments.positions_of(positions)
    arguments.choice("outside", outside, ("raise", "nan"))
    index = map_.grid.index(where)
    last = np.array(map_.grid.shape) - 1
    inside: NDArray[np.bool_] = np.all((index >= -_EDGE) & (index <= last + _EDGE), axis=1)
    if outside == "raise" and not inside.all():
        raise InputError(_where_it_ends(map_, where, inside))
    index = np.clip(np.where(inside[:, None], index, 0), 0, last)
    lower = np.minimum(index.astype(np.intp), np.maximum(last - 1, 0))
    upper = np.minimum(lower + 1, last)
    share = index - lower
    values = np.zeros(len(where))
    for corner in product((False, True), repeat=3):
        i, j, k = np.where(corner, upper, lower).T
        values += np.where(corner, share, 1 - share).prod(axis=1) * map_.values[k, j, i]
    return np.where(inside, values, np.nan)


def _where_it_ends(map_: Map, positions: Floats, inside: NDArray[np.bool_]) -> str:
    """Return the error message about the first position outside."""
    n = int((~inside).sum())
    first = int(np.argmin(inside))
    point, start, end = (_coordinates(p) for p in (positions[first], map_.grid.origin, map_.grid.last))
    count = "1 position is" if n == 1 else f"{n:,} positions are"
    return f"{count} outside the map, number {first + 1} at {point} first; the map reaches from {start} to {end} A"


def _coordinates(point: Floats) -> str:
    return f"({', '.join(f'{value:.3f}' for value in point)})"
