"""Specification of a call of `potmap`: maps of structures, models and trajectories, and their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, Taken
from ..common import arguments
from ..common.errors import FormatError, InputError, KeywordError, ParameterError, PeleError
from ..common.inputfile import InputFile, read_file
from ..common.notes import heard_notes, note
from ..common.variant import Progress
from ..common.writing import refuse_target
from ..formats import model_numbers, require_map_suffix, require_table_suffix
from ..grid import Grid
from ..jobs import Journal, Place, Record
from ..jobs.checks import Checks
from ..jobs.given import Given, given_molecule
from ..jobs.provenance import Call, with_coordinates
from ..jobs.running import run_with
from ..jobs.spec import StructurePath, StructureSpec
from ..reading import Reading
from ..report import Column, Report, Reported
from ..trajectories import Trajectory
from ..trajectories.selection import Selection
from ..trajectories.streaming import ahead
from .computing import estimate_seconds, memory_bytes, one_map, potmap_models
from .methods import MAP_METHODS, SPLIT_METHODS
from .options import MapOptions
from .over import FramePotentials, potentials_over, potmap_over
from .pictures import draw, require_drawn, require_end
from .result import STATISTIC, PotmapResult, targets

NAME = "{name}"  # placeholder in file names: the structure's name without suffix
DEFAULT_PADDING = 10.0  # A
Target = TypeVar("Target", Path, Path | None)


@dataclass(frozen=True)
class MapWork:
    """Size of a map to be computed.

    n_models : number of models; n_frames : number of frames, 0 without a trajectory
    seconds : estimated kernel time; None if unknown
    memory : device memory for a mesh or lattices, bytes, else 0; n_bytes : size of the map
    """

    n_atoms: int
    shape: tuple[int, int, int]
    n_models: int
    n_frames: int
    seconds: float | None
    memory: int
    n_bytes: int

    @classmethod
    def of(cls, atoms: Atoms, n_models: int, n_frames: int, grid: Grid, options: MapOptions) -> MapWork:
        """Estimate the work. Raises the same errors as `potmap`."""
        method = MAP_METHODS.get(options.method)  # None for auto
        seconds = None
        if method is not None and method.atom_by_atom:  # the cost of a mesh cannot be estimated from parts
            seconds = max(n_models, n_frames) * estimate_seconds(atoms, grid, **vars(options))
        size = len(grid) * np.dtype(options.precision).itemsize * (4 if options.field else 1)
        memory = memory_bytes(atoms, grid, options) if options.method in SPLIT_METHODS else 0
        return cls(len(atoms), grid.shape, n_models, n_frames, seconds, memory, size)

    @property
    def evaluations(self) -> int:
        """Number of atoms times number of points."""
        return self.n_atoms * int(np.prod(self.shape))


Tell = Callable[[MapWork], None]


@runtime_checkable
class OpensFrames(Protocol):
    """Options of a trajectory, which is opened once the atoms are known."""

    def opened(self, atoms: Atoms, chosen: Taken | None = None) -> Trajectory:
        """Open the trajectory. chosen : atoms that were selected from their file, None for all"""


@dataclass(frozen=True, eq=False)
class MapSpec(StructureSpec):
    """Maps of structures, and their files.

    reading : of the structures; models : "one" or "all"; options : of each map
    grid : of maps, or None to create one from spacing, A, and padding, A around all atoms, 10 by default, or from
        origin, A, and shape, the number of points along x, y, z
    frames : opens the trajectory of a molecule, None without one; combine : statistic of models and frames
    align : atoms by which to superpose frames, True for the default of `potmap_over`, False for none
    at_atoms : atoms at which to compute potentials in frames instead of a map, or None
    outputs : files; png, surface_png : pictures of slices and of the molecular surface; {name} in their names is
        required for several structures; scenes : programs to write scripts for
    color_max : end of the colour scale of surfaces, None to choose it from the values; color_unit : unit of color_max,
        which is ignored for maps in others; None for any unit
    file_unit : unit of files, None for the default of the format; call : returns facts about the call to store in files
    """

    reading: Reading
    models: str
    options: MapOptions
    grid: Grid | None = None
    spacing: float = 0.5
    padding: float | None = None
    origin: ArrayLike | None = None
    shape: ArrayLike | None = None
    frames: Callable[[Given], Trajectory] | None = None
    combine: str | None = None
    align: Selection | bool = False
    at_atoms: Selection | None = None
    outputs: tuple[Path, ...] = ()
    png: Path | None = None
    surface_png: Path | None = None
    scenes: tuple[str, ...] = ()
    color_max: float | None = None
    color_unit: str | None = None
    file_unit: str | None = None
    call: Call | None = None

    def __post_init__(self) -> None:
        require_end(self.color_max)
        if self.grid is not None:
            arguments.instance("grid", self.grid, Grid, "a Grid: Grid.around(atoms, padding=10, spacing=0.5)")
            if not (self.padding is self.origin is self.shape is None and self.spacing == MapSpec.spacing):
                raise KeywordError("choose either `grid`, or `spacing` and `padding`")
        if (self.origin is None) != (self.shape is None) or (self.origin is not None and self.padding is not None):
            raise KeywordError("a grid is defined by `padding`, or by `origin` and `shape` together")

    def grid_around(self, models: Sequence[Atoms]) -> Grid:
        """Return the grid, by default one around all models."""
        if self.grid is not None:
            return self.grid
        if self.origin is not None and self.shape is not None:
            return Grid(self.origin, self.spacing, self.shape)
        positions = np.concatenate([atoms.positions for atoms in models])
        together = Atoms(positions=positions, charges=np.zeros(len(positions)))
        return Grid.around(together, DEFAULT_PADDING if self.padding is None else self.padding, self.spacing)

    def of(self, path: Path) -> MapSpec:
        """Return the specification with the file names of one structure."""
        outputs = tuple(_named(each, path) for each in self.outputs)
        return replace(self, outputs=outputs, png=_named(self.png, path), surface_png=_named(self.surface_png, path))

    def require(self, source: Path | None) -> None:
        """Raise errors for files that cannot be written, before the computation. source : path of the structure"""
        if self.at_atoms is not None:
            for output in self.outputs:
                require_table_suffix(output)
            return
        for output in self.outputs:
            require_map_suffix(output)
            if STATISTIC in output.name:
                if self.models != "all" and self.frames is None:
                    raise KeywordError(f'{output}: {STATISTIC} can only be used with `models="all"` or a trajectory')
                for target in targets(output).values():
                    refuse_target(target, [] if source is None else [source])
        is_whole, outputs = self.reading.is_whole, whole(self.outputs)
        require_drawn(self.png, self.surface_png, self.scenes, source, outputs, is_whole)

    def found(
        self, given: Given | InputFile, *, tell: Tell | None = None, progress: Progress | None = None
    ) -> PotmapResult | FramePotentials:
        """Compute the map of a molecule, of one model or of all, or over frames."""
        found: PotmapResult | FramePotentials
        with heard_notes() as heard:
            if self.models == "all":
                assert isinstance(given, InputFile)
                found, given = self._of_models(given, tell, progress)
            else:
                given = given if isinstance(given, Given) else given_molecule(given, self.reading)
                found = (self._of_one if self.frames is None else self._over)(given, tell, progress)
            found = replace(found, source=given.source, call=with_coordinates(self.call, given.coordinates))
        return replace(found, heard=tuple(heard))

    def _of_one(self, given: Given, tell: Tell | None, progress: Progress | None) -> PotmapResult:
        self._note(given.source, [given.atoms])
        grid = self.grid_around([given.atoms])
        self._announce(given.atoms, 1, 0, grid, tell)
        return replace(one_map(given.atoms, grid, progress=progress, **vars(self.options)), file_unit=self.file_unit)

    def _of_models(self, source: InputFile, tell: Tell | None, progress: Progress | None) -> tuple[PotmapResult, Given]:
        """Return the result for all models of a file, and the first model that can be read."""
        models = read_models(source, self.reading)
        places = [number for number, model in models.items() if isinstance(model, Atoms)]
        every = [model for model in models.values() if isinstance(model, Atoms)]
        self._note(source, every)
        grid = self.grid_around(every)
        self._announce(every[0], len(every), 0, grid, tell)
        failed = dict[int, str]()
        found = potmap_models(every, grid, failed=failed, progress=progress, **vars(self.options))
        errors = {number: reason for number, reason in models.items() if isinstance(reason, str)}
        errors |= {places[place]: reason for place, reason in failed.items()}
        result = replace(
            found, atoms=every[0], map=found.maps[self.combine or "avg"], numbers=list(models),
            errors=dict(sorted(errors.items())), file_unit=self.file_unit,
        )  # fmt: skip
        return result, Given(every[0], source)

    def _over(self, given: Given, tell: Tell | None, progress: Progress | None) -> PotmapResult | FramePotentials:
        assert self.frames is not None
        frames = self.frames(given)
        for sentence in frames.notes:
            note(f"Note: {sentence}")
        atoms = replace(given.atoms, notes=(*given.atoms.notes, *frames.notes))
        options = vars(self.options)
        if self.at_atoms is not None:
            if tell is not None:
                tell(MapWork(len(atoms), (0, 0, 0), 1, len(frames), None, 0, 0))
            return potentials_over(atoms, frames, self.at_atoms, progress=progress, **options)
        stays = self.grid is not None or self.origin is not None or self.align is not False
        grid = self.grid_around([atoms if stays else corners(frames, atoms)])
        self._announce(atoms, 1, len(frames), grid, tell)
        found = potmap_over(atoms, frames, grid, align=self.align, progress=progress, **options)
        seconds = {**found.result.seconds, "frames": found.seconds}
        return replace(
            found.result, atoms=atoms, map=found.maps[self.combine or "avg"], seconds=seconds, frames=found,
            errors=found.errors, file_unit=self.file_unit,
        )  # fmt: skip

    def _note(self, source: InputFile | None, models: Sequence[Atoms]) -> None:
        """Report findings about structures that were read."""
        if source is not None:
            for atoms in models:
                Checks(source).noted(atoms)

    def _announce(self, atoms: Atoms, n_models: int, n_frames: int, grid: Grid, tell: Tell | None) -> None:
        if tell is not None:
            tell(MapWork.of(atoms, n_models, n_frames, grid, self.options))

    def write(self, found: PotmapResult | FramePotentials, progress: Progress | None = None) -> tuple[Path, ...]:
        """Write the files and draw the pictures. Returns the files of scenes."""
        if isinstance(found, FramePotentials):
            for output in self.outputs:
                found.save(output)
            return ()
        for output in self.outputs:
            found.save(output, progress=progress)
        end = self.color_max if self.color_unit in (None, found.unit) else None
        is_whole, outputs = self.reading.is_whole, whole(self.outputs)
        return draw(found, self.png, self.surface_png, self.scenes, end, outputs, is_whole)

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Compute and write the map of a file. Returns its JSON record."""
        source = read_file(item)
        own = self.of(source.path)
        own.require(source.path)
        found = own.found(source)
        own.write(found)
        record = found.to_json()
        return {name: value for name, value in record.items() if name not in ("schema", "structure", "sha256")}

    def several(self, paths: Sequence[str | PathLike[str]], place: Place) -> MapBatch:
        """Compute and write the maps of structures, in this process or by workers; failures are recorded."""
        files = (*self.outputs, self.png, self.surface_png)
        _require_names([Path(path) for path in paths], [path for path in files if path is not None])
        wanted = [each if isinstance(each, InputFile) else Path(each) for each in paths]
        return MapBatch(tuple(run_with(self, wanted, Journal(None, {}), False, place)))


@dataclass(frozen=True, eq=False)
class MapBatch(Reported):
    """Maps of several structures, which are in files.

    records : for each structure, in order, with the reason if it failed
    """

    records: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place: int) -> Record:
        return self.records[place]

    def __repr__(self) -> str:
        return f"MapBatch({len(self):,} maps, {len(self.errors):,} failed)"

    @property
    def errors(self) -> dict[int, str]:
        """Reasons why structures have no map, by index from 0."""
        return {k: record.error for k, record in enumerate(self.records) if record.failed}

    def table(self) -> Report:
        """Return a row for each structure: points, minimum, maximum and mean potential, or the reason for a failure."""
        rows = [record.to_dict() for record in self.records]
        unit = next((row["unit"] for row in rows if "unit" in row), "")
        columns: dict[str, Any] = {"structure": np.array([row["structure"] for row in rows])}
        columns["points"] = np.array([int(np.prod(row.get("shape", 0))) for row in rows])
        columns |= {name: Column([row.get(name, np.nan) for row in rows], unit) for name in ("min", "max", "mean")}
        columns["error"] = np.array([record.error for record in self.records])
        facts = next((dict(row["settings"]) for row in rows if "settings" in row), {})
        return Report(f"Potential maps of {len(rows):,} structures", columns, facts)

    def to_json(self) -> Any:
        """Return the records, which the command prints as JSON, one per line."""
        return [record.to_dict() for record in self.records]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as .h5, .csv or .json; maps are in separate files."""
        self.table().save(path)


def read_models(source: InputFile, reading: Reading) -> dict[int, Atoms | str]:
    """Read all models of a file by number; error messages replace those that cannot be read.

    Raises the first error if no model can be read.
    """
    models, errors = dict[int, Atoms | str](), list[PeleError]()
    for number in model_numbers(source):
        try:
            models[number] = reading.chosen(source, number)[0]
        except (FormatError, InputError, ParameterError) as error:
            models[number] = str(error)
            errors.append(error)
    if len(errors) == len(models):
        raise errors[0]
    return models


def corners(frames: Trajectory, atoms: Atoms) -> Atoms:
    """Return two atoms at the lowest and the highest coordinates of all frames.

    Frames with missing positions are ignored. Raises InputError, which names the atom, if no frame is left.
    """
    lowest, highest = np.full(3, np.inf), np.full(3, -np.inf)
    first: Floats | None = None
    for piece in ahead(frames.pieces()):
        first = piece.positions[0] if first is None else first
        whole = piece.positions[np.isfinite(piece.positions).all(axis=(1, 2))]
        if len(whole):
            lowest, highest = np.minimum(lowest, whole.min(axis=(0, 1))), np.maximum(highest, whole.max(axis=(0, 1)))
    if first is not None and not np.isfinite(lowest).all():
        atoms.moved(first)  # raises an error that names the atom
    return Atoms(positions=np.stack([lowest, highest]), charges=np.zeros(2))


def whole(outputs: Sequence[Path]) -> tuple[Path, ...]:
    """Return the outputs without {statistic}, which scenes may show."""
    return tuple(output for output in outputs if STATISTIC not in output.name)


def _named(target: Target, path: Path) -> Target:
    """Insert the structure's name into a file name."""
    if not isinstance(target, Path):
        return target
    return target.with_name(target.name.replace(NAME, path.name.split(".")[0]))


def _require_names(paths: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Raise errors for outputs that would overwrite each other or a structure."""
    for output in outputs:
        written = [_named(output, path) for path in paths]
        if len(set(written)) < len(paths):
            same = "have one name" if NAME in output.name else f"need {NAME} in it, as in {NAME}{output.suffix}"
            raise KeywordError(f"{output}: maps of several structures {same}; give each a separate file")
        for target in written:
            refuse_target(target, paths)
