"""How long a map will take, from a small part of it."""

from __future__ import annotations

from typing import Any

from ..atoms import Atoms
from ..grid import Grid
from . import potmap
from .touching import require_apart

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
        potmap(atoms, part, **options)  # builds the kernels
        seconds = potmap(atoms, part, **options).seconds["kernel"]
        if len(part) == len(grid) or seconds > ENOUGH_SECONDS:
            return seconds * len(grid) / len(part)
        points = 8 * len(part)


def middle_part(grid: Grid, points: float) -> Grid:
    """About so many points of a grid: slices from its middle, or rows of as many slices as blocks of points fill."""
    nx, ny, nz = grid.shape
    fewest = min(nz, FILLED_SLICES)
    rows = int(min(ny, max(1, points / (nx * fewest))))
    slices = int(min(nz, max(fewest, points / (nx * rows))))
    first = (0, (ny - rows) // 2, (nz - slices) // 2)
    return Grid(grid.position(first), grid.spacing, (nx, rows, slices))
