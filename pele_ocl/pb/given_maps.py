"""User-supplied maps of dielectric constants, ion accessibility and charges, used instead of values from atoms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..grid import Grid, Map
from ..pb_model import PBProblem
from .charges import NodeCharges, NodeWeights
from .launching import Launching
from .probes import Probes
from .surface import Coefficients, find_coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer


def sampled(given: Map, grid: Grid) -> Floats:
    """Interpolate a map linearly at the nodes of a grid, (nz, ny, nx); nodes outside of it get the nearest value."""
    values, own = np.asarray(given.values, np.float64), given.grid
    for axis, nodes in enumerate(grid.axes()):
        last = own.shape[axis] - 1
        place = np.clip((nodes - own.origin[axis]) / own.spacing[axis], 0, last)
        low = np.minimum(np.floor(place).astype(np.int64), max(last - 1, 0))
        share = np.expand_dims(place - low, tuple(range(1, axis + 1)))
        below, above = (np.take(values, np.minimum(low + step, last), axis=2 - axis) for step in (0, 1))
        values = below + share * (above - below)
    return values


def charges_on(problem: PBProblem, grid: Grid, spread: NodeWeights) -> NodeCharges:
    """Return the node charges of a grid, from the given map or from the atoms. spread : weights of the atoms"""
    given = problem.maps.charges
    if given is None:
        return NodeCharges.of(problem, grid, spread)
    values = float(np.prod(grid.spacing)) * sampled(given, grid)
    z, y, x = np.nonzero(values)
    return NodeCharges(np.stack([x, y, z], axis=1), values[z, y, x])


def coefficients_on(launching: Launching, problem: PBProblem, grid: Grid, probes: Probes) -> Coefficients:
    """Return the coefficients of a grid, from the given maps or from the atoms. probes : from probe_points"""
    return _with_maps(find_coefficients(launching, problem, grid, probes), problem, grid)


def _with_maps(found: Coefficients, problem: PBProblem, grid: Grid) -> Coefficients:
    """Replace coefficients computed from atoms by those of the given maps."""
    maps, launching, colours = problem.maps, found.launching, found.colours
    if maps.dielectrics is None and maps.access is None:
        return found
    edges, accesses = found.on_host(), found.accesses_on_host()
    factors = float(np.prod(grid.spacing)) / grid.spacing**2
    for axis, given in enumerate(maps.dielectrics or ()):
        half = np.where(np.arange(3) == axis, 0.5 * grid.spacing, 0)
        edges[axis] = factors[axis] * sampled(given, Grid(grid.origin + half, grid.spacing, grid.shape))
    if maps.access is not None and found.has_salt:
        accesses = sampled(maps.access, grid)
    queue, wide = launching.queue, launching.wide

    def uploaded(values: Floats, kind: np.dtype[np.floating]) -> Buffer:
        return queue.send(colours.split(values.astype(kind)), kind)

    return replace(
        found, is_coded=False, edges=tuple(uploaded(each, wide) for each in edges),
        narrow=tuple(uploaded(each, queue.dtype) for each in edges),
        accesses=uploaded(accesses, wide) if found.has_salt else queue.zeros(1, wide),
    )  # fmt: skip
