"""Linear combinations of maps, point by point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..atoms import Floats
from ..common import arguments
from ..common.errors import InputError
from ..grid import Grid, Map, require_map
from ..sampling import sample
from ..units import POTENTIAL_UNITS

SAME = 1e-3  # tolerance for equal grid points, in units of the spacing; some formats round coordinates


def combine_maps(maps: Sequence[Map], factors: Sequence[float], *, onto_first: bool = False) -> Map:
    """Return the linear combination of maps: factors (1, -1) give a difference, (1/n, ...) the mean of n maps.

    maps : maps on the same grid; potentials are converted to the unit of the first map
    factors : one factor per map
    onto_first : True to interpolate maps on other grids linearly at the points of the first map, in the region covered
        by all maps

    Returns a Map in the unit of the first map and on its grid, or the part of it that all maps cover. The values are
    float32 if those of all maps are. Raises InputError for maps on different grids or without overlap, and for units
    that cannot be converted.

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
    >>> ones = pele_ocl.Map(grid, np.ones((2, 2, 2)), "kT/e")
    >>> float(pele_ocl.combine_maps([ones, ones], [2.0, -1.0]).values.sum())
    8.0
    """
    if not isinstance(maps, list | tuple) or not maps:
        raise InputError(f"the maps are {arguments.described(maps)}; expected a list of Maps")
    for map_ in maps:
        require_map(map_)
    numbers = arguments.numbers("factors", factors)
    if numbers.shape != (len(maps),):
        raise InputError(f"the factors have shape {numbers.shape}; expected one for each of the {len(maps)} maps")
    arguments.flag("onto_first", onto_first)
    first = _overlap(maps) if onto_first else maps[0]
    total = np.zeros(first.values.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, (map_, factor) in enumerate(zip(maps, numbers.tolist(), strict=True), 1):
            total += factor * _on_grid(_in_unit_of(first, first if k == 1 else map_, k), first.grid, k, onto_first)
        values = total.astype(np.result_type(*(map_.values for map_ in maps)))
    if not np.isfinite(values).all():
        raise InputError("the factors are too large, or not numbers: the result is not finite everywhere")
    found: Map = replace(first, values=values, title="")
    return found


def _overlap(maps: Sequence[Map]) -> Map:
    """Crop the first map to the region covered by all maps. Raises InputError if there is none."""
    grid = maps[0].grid
    start, end = np.zeros(3, np.intp), np.array(grid.shape, np.intp)
    for k, map_ in enumerate(maps[1:], 2):
        low, high = (grid.index(place[np.newaxis])[0] for place in (map_.grid.origin, map_.grid.last))
        start, end = np.maximum(start, np.ceil(low - SAME)), np.minimum(end, np.floor(high + SAME) + 1)
        if (start >= end).any():
            raise InputError(f"map {k} does not overlap with the first, or with all others")
    if not start.any() and (end == grid.shape).all():
        return maps[0]
    (i, j, k), (i_end, j_end, k_end) = start.astype(int), end.astype(int)
    part = Grid(grid.position((i, j, k)), grid.spacing, (i_end - i, j_end - j, k_end - k))
    cut: Map = replace(maps[0], grid=part, values=maps[0].values[k:k_end, j:j_end, i:i_end])
    return cut


def _in_unit_of(first: Map, map_: Map, number: int) -> Map:
    """Convert a map to the unit of the first."""
    if (map_.unit, map_.temperature) == (first.unit, first.temperature):
        return map_
    if first.unit in POTENTIAL_UNITS and map_.unit in POTENTIAL_UNITS:
        return map_.in_unit(first.unit, first.temperature)
    units = [repr(each.unit) if each.unit else "no unit" for each in (map_, first)]
    raise InputError(f"map {number} has {units[0]} and the first {units[1]}; convert one of them")


def _on_grid(map_: Map, grid: Grid, number: int, onto: bool) -> Floats:
    """Return the values of a map (nz, ny, nx) at the points of a grid."""
    if is_same(map_.grid, grid):
        return map_.values.astype(np.float64)
    if not onto:
        raise InputError(
            f"map {number} is on another grid than the first: {_described(map_.grid)}, not {_described(grid)}; "
            "`onto_first=True` interpolates it at the points of the first"
        )
    x, y, z = grid.axes()
    rows = np.stack(np.meshgrid(y, x, indexing="ij")[::-1], axis=-1).reshape(-1, 2)  # x runs fastest
    values = np.empty(grid.shape[::-1])
    for plane, height in zip(values, z.tolist(), strict=True):
        plane[:] = sample(map_, np.column_stack([rows, np.full(len(rows), height)])).reshape(plane.shape)
    return values


def is_same(one: Grid, other: Grid) -> bool:
    """Return whether two grids have the same points, within the rounding of file formats."""
    close = SAME * np.minimum(one.spacing, other.spacing)
    ends = np.abs([one.origin - other.origin, one.last - other.last])
    return one.shape == other.shape and bool((ends < close).all())


def _described(grid: Grid) -> str:
    """Describe a grid for messages."""
    points, origin = " x ".join(map(str, grid.shape)), ", ".join(f"{x:.6g}" for x in grid.origin)
    return f"{points} points from {origin} A, {', '.join(f'{h:.6g}' for h in grid.spacing)} A apart"
