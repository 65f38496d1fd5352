"""The map of one model, or of all models and frames together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...atoms import Atoms
from ...grid import Grid, Map
from ...potmap import MAP_METHODS, PotmapResult
from ...potmap import potmap as compute
from ...potmap.estimate import estimate_seconds, memory_bytes
from ...potmap.models import potmap_models
from ...potmap.options import MapOptions
from ...potmap.split_methods import SPLIT_METHODS
from ...trajectories import FrameMaps, Trajectory, potmap_over
from ..frames.run import FrameLine
from ..report import binary_size, counted, duration
from ..terminal import note

FIELD_NAMES = ("field_x", "field_y", "field_z")


@dataclass(frozen=True, eq=False)
class Computed:
    """The maps that were computed, and the facts to report.

    map : the potential, or what was asked for of all models; extra : name -> further maps of a file that holds several
    frames : of a trajectory, whose maps these are
    """

    atoms: Atoms
    map: Map
    extra: dict[str, Map]
    result: PotmapResult
    n_models: int
    seconds: dict[str, float]
    frames: FrameMaps | None = None

    @property
    def evals_per_second(self) -> float:
        return self.n_models * len(self.atoms) * len(self.map.grid) / max(self.seconds["kernel"], 1e-9)


def announce(atoms: Atoms, n_models: int, grid: Grid, options: dict[str, Any]) -> None:
    """Say how large the map is, and roughly how long it takes."""
    method = MAP_METHODS.get(options["method"])  # None for auto
    estimated = method is not None and method.atom_by_atom  # what a mesh or lattices cost is not that of parts
    seconds = n_models * estimate_seconds(atoms, grid, **options) if estimated else 0.0
    size = len(grid) * np.dtype(options["precision"]).itemsize * (4 if options.get("field") else 1)
    memory = memory_bytes(atoms, grid, MapOptions(**options)) if options["method"] in SPLIT_METHODS else 0
    n_atoms = counted(len(atoms), "atom") + (f" for each of {n_models:,} models" if n_models > 1 else "")
    note(
        f"{' x '.join(map(str, grid.shape))} points, {binary_size(size)}, {n_atoms}"
        + (f": {f'about {duration(seconds)}' if seconds >= 1e-3 else 'less than 1 ms'} of kernels" if estimated else "")
        + (f": about {binary_size(memory)} of the device's memory" if memory else "")
    )


def computed(models: list[Atoms], grid: Grid, combine: str | None, options: dict[str, Any]) -> Computed:
    """The map of one model with its field, or of several together as `combine` says."""
    if len(models) > 1 or combine is not None:
        return summed(models[0], models, grid, combine, options)
    result = compute(models[0], grid, **options)
    extra = {}
    if result.field is not None:
        assert result.field_strength is not None
        components = dict(zip(FIELD_NAMES, result.field, strict=True)) | {"field_strength": result.field_strength}
        unit, kelvin = f"{result.unit}/A", result.map.temperature
        extra = {name: Map(grid, values, unit, name, kelvin) for name, values in components.items()}
    return Computed(models[0], result.map, extra, result, 1, dict(result.seconds))


def summed(
    atoms: Atoms, models: Iterable[Atoms], grid: Grid, combine: str | None, options: dict[str, object]
) -> Computed:
    """The map of all models of a molecule together, which are taken one by one."""
    found = potmap_models(models, grid, **options)
    return Computed(atoms, found.maps[combine or "avg"], found.maps, found.last, found.n_models, found.seconds)


def over_frames(
    atoms: Atoms, frames: Trajectory, grid: Grid, align: str | bool, combine: str | None, options: dict[str, Any]
) -> Computed:
    """The maps of all frames together; align : of `potmap_over`."""
    with FrameLine("Potential map", len(frames)) as progress:
        found = potmap_over(atoms, frames, grid, align=align, progress=progress, **options)
    maps, seconds = found.maps, {**found.result.seconds, "frames": found.seconds}
    return Computed(atoms, maps[combine or "avg"], maps, found.result, len(found), seconds, found)
