"""Computation of a map: of one structure, of all models, or of the frames of a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...atoms import Atoms, Floats
from ...common.errors import FormatError, InputError, ParameterError, PeleError
from ...common.inputfile import InputFile
from ...formats import model_numbers
from ...grid import Grid, Map
from ...potmap import MAP_METHODS, PotmapResult
from ...potmap import potmap as compute
from ...potmap.estimate import estimate_seconds, memory_bytes
from ...potmap.methods import SPLIT_METHODS
from ...potmap.models import potmap_models
from ...potmap.options import MapOptions
from ...trajectories import FrameMaps, Trajectory, potmap_over
from ...trajectories.streaming import ahead
from ..frames.run import FrameLine
from ..report import binary_size, counted, duration
from ..terminal import note


def corners(frames: Trajectory, atoms: Atoms) -> Atoms:
    """Make two atoms at the lowest and the highest x, y and z of all frames.

    Frames with an atom that is nowhere do not count. Raises InputError, which names the atom, if no frame is left.
    """
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    first: Floats | None = None
    for piece in ahead(frames.pieces()):
        first = piece.positions[0] if first is None else first
        whole = piece.positions[np.isfinite(piece.positions).all(axis=(1, 2))]
        if len(whole):
            lowest, highest = np.minimum(lowest, whole.min(axis=(0, 1))), np.maximum(highest, whole.max(axis=(0, 1)))
    if first is not None and not np.isfinite(lowest).all():
        atoms.moved(first)  # names the atom that is nowhere
    return Atoms(positions=np.stack([lowest, highest]), charges=np.zeros(2))


FIELD_NAMES = ("field_x", "field_y", "field_z")


@dataclass(frozen=True, eq=False)
class Models:
    """All models of a file.

    numbers : of all; atoms : of each that can be read, by number; failed : why others cannot
    """

    numbers: Sequence[int]
    atoms: Mapping[int, Atoms]
    failed: Mapping[int, str]

    @classmethod
    def of(cls, source: InputFile, reading: Callable[[InputFile, int], Atoms]) -> Models:
        """Read all models. Raises the first one's error if none can be read."""
        numbers, atoms, errors = model_numbers(source), dict[int, Atoms](), dict[int, PeleError]()
        for number in numbers:
            try:
                atoms[number] = reading(source, number)
            except (FormatError, InputError, ParameterError) as error:
                errors[number] = error
        if not atoms:
            raise next(iter(errors.values()))
        return cls(numbers, atoms, {number: str(error) for number, error in errors.items()})


@dataclass(frozen=True, eq=False)
class ComputedMaps:
    """Maps that were computed, and the facts to report.

    map : the potential, or what was asked for of all models; extra : name -> further maps of a file that holds several
    frames : of a trajectory, whose maps these are
    numbers : of all models, empty if one model was asked for; failed : why models have no map, by number
    """

    atoms: Atoms
    map: Map
    extra: dict[str, Map]
    result: PotmapResult
    n_models: int
    seconds: dict[str, float]
    frames: FrameMaps | None = None
    numbers: Sequence[int] = ()
    failed: Mapping[int, str] = field(default_factory=dict)

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


def of_structure(atoms: Atoms, grid: Grid, options: dict[str, Any]) -> ComputedMaps:
    """Compute the map of one structure, and its field if asked for."""
    result = compute(atoms, grid, **options)
    extra = {}
    if result.field is not None:
        assert result.field_strength is not None
        components = dict(zip(FIELD_NAMES, result.field, strict=True)) | {"field_strength": result.field_strength}
        unit, kelvin = f"{result.unit}/A", result.map.temperature
        extra = {name: Map(grid, values, unit, name, kelvin) for name, values in components.items()}
    return ComputedMaps(atoms, result.map, extra, result, 1, dict(result.seconds))


def over_models(models: Models, grid: Grid, combine: str | None, options: dict[str, Any]) -> ComputedMaps:
    """Compute the map of all models together, less models that fail."""
    failed = dict[int, str]()
    found = potmap_models(models.atoms.values(), grid, failed=failed, **options)
    numbers, first = list(models.atoms), next(iter(models.atoms.values()))
    every = sorted({**models.failed, **{numbers[place]: reason for place, reason in failed.items()}}.items())
    return ComputedMaps(
        first, found.maps[combine or "avg"], found.maps, found.last, found.n_models, found.seconds,
        numbers=models.numbers, failed=dict(every),
    )  # fmt: skip


def over_frames(
    atoms: Atoms, frames: Trajectory, grid: Grid, align: str | bool, combine: str | None, options: dict[str, Any]
) -> ComputedMaps:
    """Compute the maps of all frames together; align : of `potmap_over`"""
    with FrameLine("Potential map", len(frames)) as progress:
        found = potmap_over(atoms, frames, grid, align=align, progress=progress, **options)
    maps, seconds = found.maps, {**found.result.seconds, "frames": found.seconds}
    return ComputedMaps(atoms, maps[combine or "avg"], maps, found.result, len(found), seconds, found)
