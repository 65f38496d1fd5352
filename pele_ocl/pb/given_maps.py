"""Dielectric constants, access of ions and charges that a user gives as maps, in place of those of the atoms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..errors import InputError
from ..grid import Grid, Map
from ..pb_model import PBProblem
from .charges import NodeCharges, NodeWeights
from .launching import Launching
from .probes import Probes
from .surface import Coefficients, find_coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

SLACK = 1e-4  # of a spacing: the digits of a file's origin


def sampled(given: Map, grid: Grid, what: str, is_along: int | None = None) -> Floats:
    """Values of a map at the nodes of a grid, (nz, ny, nx), linear between the map's own.

    what : the map, as an error names it
    is_along : axis whose last nodes may lie off the map, as edges that lead from the border do

    Raises InputError if the map does not cover the grid.
    """
    values, own = np.asarray(given.values, np.float64), given.grid
    for axis, nodes in enumerate(grid.axes()):
        place, last = (nodes - own.origin[axis]) / own.spacing[axis], own.shape[axis] - 1
        needed = place[:-1] if axis == is_along else place
        if needed[0] < -SLACK or needed[-1] > last + SLACK:
            raise InputError(
                f"the map of {what} does not cover the grid along {'xyz'[axis]}; give a larger map, or a smaller grid"
            )
        place = np.clip(place, 0, last)
        low = np.minimum(np.floor(place).astype(np.int64), max(last - 1, 0))
        share = np.expand_dims(place - low, tuple(range(1, axis + 1)))
        below, above = (np.take(values, np.minimum(low + step, last), axis=2 - axis) for step in (0, 1))
        values = below + share * (above - below)
    return values


def charges_on(problem: PBProblem, grid: Grid, spread: NodeWeights) -> NodeCharges:
    """Charges of the nodes of a grid: of the given map, or of the atoms. spread : of the atoms"""
    given = problem.maps.charges
    if given is None:
        return NodeCharges.of(problem, grid, spread)
    values = float(np.prod(grid.spacing)) * sampled(given, grid, "charges")
    z, y, x = np.nonzero(values)
    return NodeCharges(np.stack([x, y, z], axis=1), values[z, y, x])


def coefficients_on(launching: Launching, problem: PBProblem, grid: Grid, probes: Probes) -> Coefficients:
    """Coefficients of the edges of a grid: of the given maps, or of the atoms. probes : of probe_points"""
    return _with_maps(find_coefficients(launching, problem, grid, probes), problem, grid)


def _with_maps(found: Coefficients, problem: PBProblem, grid: Grid) -> Coefficients:
    """Coefficients with the given maps in place of what was found of the atoms. Raises InputError as `sampled` does."""
    maps, launching, colours = problem.maps, found.launching, found.colours
    if maps.dielectrics is None and maps.access is None:
        return found
    edges, accesses = found.on_host(), found.accesses_on_host()
    if maps.dielectrics is not None:
        factors = float(np.prod(grid.spacing)) / grid.spacing**2
        for axis, given in enumerate(maps.dielectrics):
            middles = Grid(
                grid.origin + np.where(np.arange(3) == axis, 0.5 * grid.spacing, 0), grid.spacing, grid.shape
            )
            edges[axis] = factors[axis] * sampled(given, middles, f"dielectric constants along {'xyz'[axis]}", axis)
            if not (edges[axis] > 0).all():
                raise InputError(f"the map of dielectric constants along {'xyz'[axis]} has values of 0 or less")
    if maps.access is not None and found.has_salt:
        accesses = sampled(maps.access, grid, "access of ions")
        if (accesses < 0).any():
            raise InputError("the map of access of ions has values below 0")
    run, wide = launching.run, launching.wide

    def uploaded(values: Floats, kind: np.dtype[np.floating]) -> Buffer:
        return run.upload(colours.split(values.astype(kind)), kind)

    return replace(
        found, is_coded=False, edges=tuple(uploaded(each, wide) for each in edges),
        narrow=tuple(uploaded(each, run.dtype) for each in edges),
        accesses=uploaded(accesses, wide) if found.has_salt else run.zeros(1, wide),
    )  # fmt: skip
