"""Result of `potmap`."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import field as field_of
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import file_path
from ..common.errors import InputError, PeleError, Suggests
from ..common.inputfile import InputFile
from ..common.notes import with_notes
from ..common.variant import Progress
from ..formats import JsonText, write_map
from ..formats.maps.facts import map_facts, map_lines
from ..grid import Map
from ..jobs.facts import composition_as_json, notes_of
from ..jobs.provenance import Call, origin, record_head
from ..jobs.records import entries
from ..jobs.texts import choice_line, counted, ending, frame_rate, headline, medium_lines
from ..pb_model import PBModel
from ..potential_model import PotentialModel
from ..report import Column, Framed, Report
from .error import MapError
from .methods import MAP_METHODS

STATISTIC = "{statistic}"  # placeholder in file names, for one file per statistic of COMBINATIONS
COMBINATIONS = ("avg", "min", "max", "stdev")  # named as in VMD's volmap
FIELD_NAMES = ("field_x", "field_y", "field_z")


@dataclass(frozen=True, eq=False)
class PotmapResult(Framed, Suggests):
    """Potential at the points of a grid.

    map : Map, values (nz, ny, nx) in `unit`; for models and frames the requested statistic
    field : (3, nz, ny, nx) along x, y and z, in `unit` per Angstrom; None if not requested
    n_atoms : number of atoms given
    method : key of MAP_METHODS in pele_ocl/potmap/methods.py, such as "direct"
    error, field_error : MapError of the potential and of the field, for approximate methods; None for direct sums
    accuracy : of the mesh or lattices used; 0 for other methods
    wanted : the requested accuracy, by norm; 0 for methods without one
    atoms : as given; model : PotentialModel, for pb a PBModel
    seconds : "kernel", of the slowest device; "total", including overhead
    settings : all constants by name
    source : the file of the structure, None if atoms were given
    maps : for models and frames "avg", "min", "max" and "stdev"; empty for one structure
    numbers : of the models, empty for a single one; errors : reasons why models or frames have no map, by number
    frames : FrameMaps of a trajectory, else None; n_models : number of models used, 1 for one structure
    file_unit : unit of files, None for the default: hartree/e in cube files, else the map's
    heard : notes reported during the computation; call : function that returns facts about the call to store in files
    scenes : files of scenes

    >>> result = pele_ocl.potmap("data/structures/trialanine.pdb", spacing=2.0, padding=3.0)
    >>> result.map.unit, result.map.grid.shape
    ('kcal/mol/e', (10, 7, 8))
    >>> result.save("map.dx")
    """

    map: Map
    field: NDArray[np.floating] | None
    n_atoms: int
    device: str
    variant: str
    precision: str
    seconds: Mapping[str, float]
    method: str = "direct"
    error: MapError | None = None
    field_error: MapError | None = None
    accuracy: float = 0.0
    wanted: float = 0.0
    atoms: Atoms | None = None
    model: PotentialModel | PBModel | None = None
    settings: Mapping[str, Any] = field_of(default_factory=dict)
    source: InputFile | None = None
    maps: Mapping[str, Map] = field_of(default_factory=dict)
    numbers: Sequence[int] = ()
    errors: Mapping[int, str] = field_of(default_factory=dict)
    frames: FrameMaps | None = None
    n_models: int = 1
    file_unit: str | None = None
    heard: tuple[str, ...] = ()
    call: Call | None = None
    scenes: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"PotmapResult({self.n_atoms:,} atoms, {self.map!r}, {self.variant})"

    def _repr_html_(self) -> str:
        """Return the page of `write_page` for notebooks; text if it cannot be created."""
        from ..painting import about_map, painted

        if self.atoms is None or self.model is None:
            return html.escape(repr(self))
        try:
            about = about_map(self.model, self.map, self.atoms)
            return painted(self.atoms, self.map, title=repr(self), about=about).framed_page()
        except PeleError as error:  # plotly is missing, or no atom is on the grid
            return f"{html.escape(repr(self))}<br>{html.escape(str(error))}"

    @property
    def unit(self) -> str:
        """Unit of the map, one of units.POTENTIAL_UNITS."""
        return self.map.unit

    @property
    def field_strength(self) -> NDArray[np.floating] | None:
        """Magnitude of the field, (nz, ny, nx); None without the field."""
        if self.field is None:
            return None
        strength: NDArray[np.floating] = np.sqrt(np.einsum("k...,k...->...", self.field, self.field))
        return strength

    @property
    def evals_per_second(self) -> float:
        """Atoms times points of all models, divided by the kernel time in seconds."""
        return self.n_models * self.n_atoms * len(self.map.grid) / max(self.seconds["kernel"], 1e-9)

    def table(self) -> Report:
        """Return a table of minimum, maximum and mean of the map, or of each statistic of models and frames."""
        maps = dict(self.maps) or {"potential": self.map}
        points = " x ".join(map(str, self.map.grid.shape))
        columns: dict[str, Any] = {"map": list(maps)}
        for name in ("min", "max", "mean"):
            columns[name] = Column([map_facts(of)[name] for of in maps.values()], self.unit, ",.4g")
        facts = {"settings": dict(self.settings), "device": self.device}
        return Report(f"Potential of {self.n_atoms:,} atoms at {points} points", columns, facts)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the text that the command prints. verbose : include the rate; total : total seconds to report"""
        assert self.atoms is not None
        lines = [
            headline(self.source, self.atoms),
            *(medium_lines(self.settings) if self.settings else []),
            *self._several_lines(),
            "",
            *map_lines(self.map),
            *error_lines(self),
            "",
            ending(self, self.seconds["kernel"], self.seconds["total"] if total is None else total),
        ]
        if verbose and MAP_METHODS[self.method].variant:
            rate = f"Rate: {self.evals_per_second / 1e9:,.2f} billion atom evaluations per second"
            lines += ["", rate, choice_line(self.device)]
        return "\n".join(lines)

    def _several_lines(self) -> list[str]:
        """Return lines about the models or frames of the map."""
        if self.frames is None:
            return [f"{self.n_models} models"] if self.n_models > 1 else []
        facts = self.frames.facts()
        lines = [f"{counted(len(self.frames), 'frame')}, {frame_rate(facts['per_second'])}"]
        if "rmsd_mean" in facts:
            lines.append(
                f"Superposed: {facts['rmsd_mean']:.2f} A from the structure, at most {facts['rmsd_max']:.2f} A"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return a JSON record of the map."""
        of_map, result = map_facts(self.map), self
        assert self.atoms is not None
        record = {
            **record_head(self.source),
            "shape": of_map["shape"],
            "origin": of_map["origin"],
            "spacing": of_map["spacing"],
            "n_atoms": self.n_atoms,
            "composition": composition_as_json(self.atoms),
            "device": result.device,
            "method": result.method,
            "variant": result.variant,
            "precision": result.precision,
            "settings": dict(self.settings),
            "unit": of_map["unit"],
            "min": of_map["min"],
            "max": of_map["max"],
            "mean": of_map["mean"],
            **({"accuracy": result.wanted} if result.wanted else {}),
            **({} if result.error is None else {"measured_error": result.error.as_json()}),
            **({} if result.field_error is None else {"measured_field_error": result.field_error.as_json()}),
            **self._parts(),
            "seconds": dict(self.seconds),
            **({"evals_per_second": self.evals_per_second} if MAP_METHODS[result.method].variant else {}),
            **notes_of(self.atoms),
        }
        return with_notes(record, self.heard)

    def _parts(self) -> dict[str, Any]:
        """Return the part of the record about models or frames."""
        if self.numbers:
            return entries("model", [(number, self.errors.get(number, {})) for number in self.numbers])
        frames = self.frames
        if frames is None:
            return {}
        counted_ones: list[tuple[int, Mapping[str, Any] | str]] = [
            (int(number), {} if frames.rmsd is None else {"rmsd": float(frames.rmsd[k])})
            for k, number in enumerate(frames.frames)
        ]
        facts = frames.facts()
        return {
            **entries("frame", sorted([*counted_ones, *frames.errors.items()], key=lambda entry: entry[0])),
            "frames_per_second": facts["per_second"],
            **{name: value for name, value in facts.items() if name.startswith("rmsd")},
        }

    @property
    def extra(self) -> dict[str, Map]:
        """Additional maps for files with several: the field, or the statistics of models and frames."""
        if self.field is None or self.field_strength is None:
            return dict(self.maps)
        components = dict(zip(FIELD_NAMES, self.field, strict=True)) | {"field_strength": self.field_strength}
        unit, kelvin = f"{self.unit}/A", self.map.temperature
        return {name: Map(self.map.grid, values, unit, name, kelvin) for name, values in components.items()}

    def save(
        self, path: str | PathLike[str], *, inputs: Iterable[str | PathLike[str]] = (), progress: Progress | None = None
    ) -> None:
        """Write the map in the format of the suffix: .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5.

        path : for models and frames, {statistic} in its name creates one file each for "avg", "min", "max" and "stdev".
            An .h5 file contains all of them, and the field
        inputs : files that must not be overwritten; progress : called with the fraction written, 0 to 1

        Raises FormatError for another suffix or a read-only folder, and InputError for {statistic} with one structure.
        """
        attributes = self.attributes()
        for statistic, target in targets(file_path(path)).items():
            if statistic is not None and statistic not in self.maps:
                raise InputError(f"{path}: {STATISTIC} can only be used for maps of several models or frames")
            map_ = self.map if statistic is None else self.maps[statistic]
            extra = self.extra if statistic is None and target.suffix.lower() == ".h5" else {}
            own = [] if self.source is None else [self.source]
            write_map(
                target, map_, atoms=self.atoms, attributes=attributes, unit=self.file_unit, extra=extra,
                inputs=[*own, *inputs], progress=progress,
            )  # fmt: skip

    def attributes(self) -> dict[str, Any]:
        """Return attributes for files, which describe how the map was computed."""
        assert self.atoms is not None
        found = origin(self.source, self.atoms, self, self.call)
        found["settings"] = JsonText(json.dumps(dict(self.settings)))
        for prefix, error in (("error", self.error), ("field_error", self.field_error)):
            if error is not None:
                found |= {f"{prefix}_{name}": value for name, value in asdict(error).items()}
        if self.frames is not None:
            found |= {f"frames_{name}": value for name, value in self.frames.facts().items()}
        return found


@dataclass(frozen=True, eq=False, repr=False)
class FrameMaps:
    """Potential over the frames of a trajectory, at every point of a grid.

    mean, sd, min, max : Map; sd is the population standard deviation of the frames
    frames : (m,) numbers of the frames used, from 0 across all files
    rmsd : (m,) A, of the superposed atoms from the reference; None without superposition
    errors : reasons why frames failed, by number
    result : PotmapResult of the mean, with all four maps in `maps`; its `error` is that of all frames' maps together
    seconds : total time
    notes : messages about the frames, from the Trajectory
    """

    mean: Map
    sd: Map
    min: Map
    max: Map
    frames: NDArray[np.int64]
    rmsd: Floats | None
    errors: Mapping[int, str]
    result: PotmapResult
    seconds: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"FrameMaps({len(self):,} frames, {len(self.errors):,} failed; mean {self.mean!r})"

    @property
    def maps(self) -> dict[str, Map]:
        """The four maps by the names used in files and in VMD's volmap."""
        return {"avg": self.mean, "min": self.min, "max": self.max, "stdev": self.sd}

    def facts(self) -> dict[str, Any]:
        """Return numbers of used and failed frames, frames per second, and mean and largest rmsd if superposed, A."""
        rmsd = self.rmsd
        distances = {} if rmsd is None else {"rmsd_mean": float(rmsd.mean()), "rmsd_max": float(rmsd.max())}
        return {
            "n": len(self),
            "n_failed": len(self.errors),
            "per_second": (len(self) + len(self.errors)) / max(self.seconds, 1e-9),
            **distances,
        }


def targets(output: Path) -> dict[str | None, Path]:
    """Return the files of an output by statistic; the key is None for the requested statistic."""
    if STATISTIC not in output.name:
        return {None: output}
    return {name: output.with_name(output.name.replace(STATISTIC, name)) for name in COMBINATIONS}


def error_lines(result: PotmapResult) -> list[str]:
    """Return lines about the measured errors of an approximate map; empty for direct sums."""
    kept = f" ({result.method} for {result.accuracy:g})" if result.accuracy else ""
    of = {"map": (result.error, "Error", "", kept), "field": (result.field_error, "Field error", "/A", "")}
    lines = []
    for name, (error, head, per, taken) in of.items():
        if error is None:
            continue
        size = f"{error.norm:.1e} +- {error.uncertainty:.0e} of the {name}'s root mean square{taken},"
        if not np.isfinite(error.norm):
            size = f"no relative error, because the {name} is 0 at the points compared{taken},"
        missed = result.wanted and error.norm > result.wanted
        lines += [
            f"{head:13} {size}",
            f"              at most {error.largest:.3g} {result.unit}{per}, measured at {error.points:,} points"
            + (f"; more than the requested {result.wanted:g}: `method='direct'` sums all atoms" if missed else ""),
        ]
    return lines
