"""Maps of a molecule and of its models, and estimates of time and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common import arguments
from ..common.errors import InputError
from ..common.variant import Progress
from ..grid import Grid
from ..plan.selection import having
from .bins import BinGrid
from .blocking import Blocking
from .error import sample_bytes
from .methods import SPLIT_METHODS, SplitMethod
from .options import MapOptions
from .plan import Potmap, planned
from .problem import MapProblem, require_apart
from .result import COMBINATIONS, PotmapResult
from .slabs import MOST_POINTS
from .sorting import atom_bytes

if TYPE_CHECKING:
    from ..opencl.device import Device


FIRST_EVALS = 2e7
ENOUGH_SECONDS = 0.02
FILLED_SLICES = 16


def one_map(atoms: Atoms, grid: Grid, *, progress: Progress | None = None, **options: Any) -> PotmapResult:
    """Compute the map of atoms on a grid. Options, errors and result are those of `potmap`."""
    arguments.callback("progress", progress)
    return having(Potmap, options.get("variant", "auto"))(atoms, grid, **options).evaluate(progress=progress)


def estimate_seconds(atoms: Atoms, grid: Grid, **options: Any) -> float:
    """Estimate the kernel time of a map from a part in its middle, s. Options are those of `potmap`.

    Raises the same errors as `potmap` for the complete map.
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
    """Estimate the maximum memory of a map on a device, bytes, for a method of SPLIT_METHODS.

    Raises the same errors as `potmap`, and InputError if there is not enough memory for the nodes.
    """
    plan = planned(atoms, grid, options)
    return max(_bytes_on(device, plan.problem, SPLIT_METHODS[plan.method]) for device in plan.devices)


def _bytes_on(device: Device, problem: MapProblem, method: SplitMethod) -> int:
    """Return the maximum memory of a map on a device, bytes."""
    width, precision, shape = device.vector_width(problem.precision), problem.precision, problem.grid.shape
    block = Blocking.of(device.kind, device.vendor, width, precision, False, shape).pad
    nx, ny, nz = (-(-n // p) * p for n, p in zip(shape, block, strict=True))
    most = MOST_POINTS // (problem.components * nx * ny)
    slab = nx, ny, min(nz, max(block[2], most))
    needs = method.needs(problem, slab)
    near = replace(problem, model=replace(problem.model, cutoff=needs.cutoff))
    n_bins = int(np.prod(BinGrid.of(near, block).shape))
    reals = needs.reals + problem.components * (math.prod(slab) + slab[1] * slab[2])  # the map, and squares of its rows
    of_atoms = atom_bytes(device, precision, problem.n_atoms, n_bins, needs.n_blocks)
    return int(reals * np.dtype(precision).itemsize) + of_atoms + sample_bytes(device, problem)


def middle_part(grid: Grid, points: float) -> Grid:
    """Return a part of a grid with about `points` points: slices from its middle, or rows with the depth of a block."""
    nx, ny, nz = grid.shape
    fewest = min(nz, FILLED_SLICES)
    rows = int(min(ny, max(1, points / (nx * fewest))))
    slices = int(min(nz, max(fewest, points / (nx * rows))))
    first = (0, (ny - rows) // 2, (nz - slices) // 2)
    return Grid(grid.position(first), grid.spacing, (nx, rows, slices))


def potmap_models(
    models: Iterable[Atoms], grid: Grid, *, failed: dict[int, str] | None = None, **options: Any
) -> PotmapResult:
    """Compute the maps of all models on one grid in one pass, storing only running statistics.

    models : Atoms of each model; options : as in `potmap`, except `field`
    failed : receives error messages by index from 0, and other models are used; by default the first failure is raised

    Returns the result of the last model with the mean as its map, all COMBINATIONS in `maps`, the total seconds and the
    largest measured error. "stdev" is the population standard deviation of the models. Raises InputError if there is
    no model or if the field is requested, and the errors of `potmap`.
    """
    if options.get("field"):
        raise InputError("the field cannot be averaged over models; compute it for single models")
    mean = np.zeros(grid.shape[::-1])
    squares = np.zeros_like(mean)
    lowest: NDArray[np.floating] | None = None
    highest: NDArray[np.floating] | None = None
    result, n, worst = None, 0, None
    seconds = {"kernel": 0.0, "total": 0.0}
    for place, atoms in enumerate(models):
        try:
            result = one_map(atoms, grid, **options)
        except InputError as error:
            if failed is None:
                raise
            failed[place] = str(error)
            continue
        n += 1
        values = result.map.values
        # Welford's running mean and sum of squares about it.
        away = values - mean
        mean += away / n
        squares += away * (values - mean)
        lowest = values if lowest is None else np.minimum(lowest, values)
        highest = values if highest is None else np.maximum(highest, values)
        seconds = {name: seconds[name] + result.seconds[name] for name in seconds}
        if result.error is not None and (worst is None or result.error.norm > worst.norm):
            worst = result.error
    if result is None or lowest is None or highest is None:
        raise InputError(f"no model has a map: {next(iter(failed.values()))}" if failed else "no models are given")
    found = zip(COMBINATIONS, (mean, lowest, highest, np.sqrt(squares / n)), strict=True)
    own = result.map
    maps = {
        name: replace(own, values=values.astype(own.values.dtype), title=f"{name} of {n} models: {own.title}")
        for name, values in found
    }
    return replace(result, map=maps["avg"], maps=maps, n_models=n, seconds=seconds, error=worst)
