"""Estimates of a map's time, from a small part of it, and of its memory on a device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms
from ..grid import Grid
from .blocking import Blocking
from .computing import one_map, planned
from .methods import SPLIT_METHODS
from .options import MapOptions
from .problem import MapProblem, require_apart
from .slabs import MOST_POINTS

if TYPE_CHECKING:
    from ..opencl.device import Device

FIRST_EVALS = 2e7
ENOUGH_SECONDS = 0.02
FILLED_SLICES = 16


def estimate_seconds(atoms: Atoms, grid: Grid, **options: Any) -> float:
    """Seconds of the kernels for the whole map, roughly, from one of its middle; options as in `potmap`.

    Raises what `potmap` would for the whole map.
    """
    require_apart(atoms, grid, options.get("min_distance", 0.0), options.get("precision", "float32"))
    points = FIRST_EVALS / max(1, len(atoms))
    while True:
        part = middle_part(grid, points)
        one_map(atoms, part, **options)  # builds the kernels
        seconds = one_map(atoms, part, **options).seconds["kernel"]
        if len(part) == len(grid) or seconds > ENOUGH_SECONDS:
            return seconds * len(grid) / len(part)
        points = 8 * len(part)


def memory_bytes(atoms: Atoms, grid: Grid, options: MapOptions) -> int:
    """Bytes that a map by one of SPLIT_METHODS takes on each of its devices, at most, by a rule.

    Raises what `potmap` would, InputError where no nodes have room.
    """
    plan = planned(atoms, grid, options)
    problem, slabs = plan.problem, [_largest_slab(plan.problem, device) for device in plan.devices]
    reals_for = SPLIT_METHODS[plan.method].reals
    reals = max(reals_for(problem, slab) + problem.components * math.prod(slab) for slab in slabs)
    return int(reals * np.dtype(problem.precision).itemsize)


def _largest_slab(problem: MapProblem, device: Device) -> tuple[int, int, int]:
    """Points along x, y, z that a device computes at a time by one of SPLIT_METHODS, with their padding."""
    width, precision, shape = device.vector_width(problem.precision), problem.precision, problem.grid.shape
    pad = Blocking.of(device.kind, device.vendor, width, precision, False, shape).pad
    nx, ny, nz = (-(-n // p) * p for n, p in zip(shape, pad, strict=True))
    most = MOST_POINTS // (problem.components * nx * ny)
    return nx, ny, min(nz, max(pad[2], most))


def middle_part(grid: Grid, points: float) -> Grid:
    """Cut out about so many points of a grid: slices from its middle, or rows of a block's depth."""
    nx, ny, nz = grid.shape
    fewest = min(nz, FILLED_SLICES)
    rows = int(min(ny, max(1, points / (nx * fewest))))
    slices = int(min(nz, max(fewest, points / (nx * rows))))
    first = (0, (ny - rows) // 2, (nz - slices) // 2)
    return Grid(grid.position(first), grid.spacing, (nx, rows, slices))
