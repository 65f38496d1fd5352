"""Maps of many models of one molecule, summed up: average, extremes and standard deviation at every point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.errors import InputError
from ..grid import Grid, Map
from .computing import one_map
from .result import COMBINATIONS, PotmapResult


@dataclass(frozen=True, eq=False)
class ModelMaps:
    """Result of `potmap_models`.

    maps : each of COMBINATIONS -> Map; stdev belongs to the models themselves, with their number below the sum
    last : PotmapResult of the last model, with the largest measured error of all
    n_models : how many there were
    seconds : "kernel" and "total" of all models
    """

    maps: dict[str, Map]
    last: PotmapResult
    n_models: int
    seconds: dict[str, float]


def potmap_models(
    models: Iterable[Atoms], grid: Grid, *, failed: dict[int, str] | None = None, **options: Any
) -> ModelMaps:
    """Compute maps of all models on one grid in one pass, and keep no more than the sums.

    models : Atoms of each model; options as in `potmap`, but `field`
    failed : takes why models have no map, by their place from 0, and others count; by default the first is an error

    Raises InputError if there is no model, or the field is asked for, and as `potmap` does.
    """
    if options.get("field"):
        raise InputError("the field of many models is not summed up; ask for it model by model")
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
        raise InputError(f"no model has a map: {next(iter(failed.values()))}" if failed else "there is no model to map")
    found = zip(COMBINATIONS, (mean, lowest, highest, np.sqrt(squares / n)), strict=True)
    own = result.map
    maps = {
        name: replace(own, values=values.astype(own.values.dtype), title=f"{name} of {n} models: {own.title}")
        for name, values in found
    }
    return ModelMaps(maps, replace(result, error=worst), n, seconds)
