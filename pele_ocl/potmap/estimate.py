"""How long a map will take, from a small part of it, and how much memory on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..atoms import Atoms
from ..grid import Grid
from ..potential_model import PotentialModel
from . import potmap
from .accuracy import DEFAULT_ACCURACY, require_mesh
from .mesh import mesh_reals
from .problem import MapProblem
from .room import MeshRoom
from .slabs import MOST_POINTS
from .touching import require_apart

if TYPE_CHECKING:
    from ..opencl.device import Device

    Choice: TypeAlias = "Device | int | str | Sequence[Device | int | str] | None"

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


def mesh_bytes(
    atoms: Atoms, grid: Grid, *, device: Choice = None, precision: str = "float32", accuracy: float | None = None,
    field: bool = False, **others: object,
) -> int:  # fmt: skip
    """Bytes that a map by the mesh takes on each of its devices, at most, by a rule.

    Options as in `potmap`, of which the others do not matter. Raises InputError where no mesh has room.
    """
    from ..opencl.device import get_device

    chosen = device if isinstance(device, Sequence) and not isinstance(device, str) else [device]
    room = MeshRoom.of([get_device(each) for each in chosen], precision)
    wanted = accuracy or DEFAULT_ACCURACY
    problem = MapProblem.of(atoms, grid, PotentialModel(), 1.0, field, precision, wanted, room)
    require_mesh(problem)
    reals = mesh_reals(problem) + min(problem.components * len(grid), MOST_POINTS)
    return int(reals * np.dtype(precision).itemsize)


def middle_part(grid: Grid, points: float) -> Grid:
    """About so many points of a grid: slices from its middle, or rows of as many slices as blocks of points fill."""
    nx, ny, nz = grid.shape
    fewest = min(nz, FILLED_SLICES)
    rows = int(min(ny, max(1, points / (nx * fewest))))
    slices = int(min(nz, max(fewest, points / (nx * rows))))
    first = (0, (ny - rows) // 2, (nz - slices) // 2)
    return Grid(grid.position(first), grid.spacing, (nx, rows, slices))
