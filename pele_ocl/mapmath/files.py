"""Convert, combine and sample map files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from ..atoms import Atoms, Floats, Labels
from ..common import arguments
from ..common.errors import FormatError, InputError, KeywordError
from ..common.inputfile import InputFile, read_file
from ..common.notes import note, one_line, with_notes
from ..common.variant import Progress
from ..formats import (
    POINT_SUFFIXES,
    STRUCTURES,
    is_structure,
    read_map,
    read_points,
    read_structure_or_atoms,
    require_map_suffix,
    require_table_suffix,
    write_map,
    write_table,
)
from ..formats.maps import as_written, holds_several, read_extra_maps
from ..formats.maps.facts import map_facts, map_lines
from ..formats.maps.pictures import draw_slices, require_png
from ..grid import Map, require_map
from ..jobs.provenance import Call, provenance
from ..jobs.records import SCHEMA
from ..jobs.texts import columns_of, counted
from ..report import Column, Framed, Report, text_table
from ..sampling import sample
from ..units import POTENTIAL_UNITS
from .combining import combine_maps

Path_ = str | PathLike[str]
_SIGNS = {"+": 1.0, "-": -1.0}


@dataclass(frozen=True, eq=False)
class MapResult(Framed):
    """A map computed from other maps.

    map : the map; sources : input files; extra : further maps of the file, by name
    facts : how the map was made, for `to_json`; attributes : metadata for output files
    unit : unit in output files, None for the default of the format

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
    >>> ones = pele_ocl.Map(grid, np.ones((2, 2, 2)), "kT/e", temperature=300.0)
    >>> result = pele_ocl.mapmath(ones, "+", ones)
    >>> float(result.map.values.max())
    2.0
    >>> result.save("twos.dx")
    """

    map: Map
    sources: tuple[InputFile, ...] = ()
    extra: dict[str, Map] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict, repr=False)
    unit: str | None = None

    def __repr__(self) -> str:
        return f"MapResult({self.map!r})"

    def table(self) -> Report:
        """Return the map's properties as a table."""
        facts = map_facts(self.map)
        rows = {name: str(value) for name, value in facts.items()}
        return Report(self.map.title or "Map", {"fact": list(rows), "value": list(rows.values())}, facts)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the points and values of the map, as the command prints them."""
        return "\n".join(map_lines(self.map))

    def to_json(self) -> dict[str, Any]:
        """Return the properties of the map as a JSON-compatible dictionary."""
        head = {} if not self.sources else {"map": str(self.sources[0]), "sha256": self.sources[0].sha256}
        return with_notes({"schema": SCHEMA, **head, **self.facts, **map_facts(self.map)}, ())

    def save(self, path: Path_, *, inputs: Iterable[Path_] = (), progress: Progress | None = None) -> None:
        """Write the map in the format given by the suffix, or a picture of its slices to a .png file.

        inputs : files that must not be overwritten; progress : called with the written fraction, 0 to 1
        """
        if arguments.file_path(path).suffix.lower() == ".png":
            draw_slices(path, self.map, [*self.sources, *arguments.file_paths("inputs", inputs)])
            return
        several = holds_several(path)
        write_map(
            path, self.map, unit=self.unit, attributes=self.attributes, extra=self.extra if several else {},
            inputs=[*self.sources, *arguments.file_paths("inputs", inputs)], progress=progress,
        )  # fmt: skip


@arguments.checked
def convert(
    path: Path_, output: Path_ | None = None, *, unit: str | None = None, from_unit: str | None = None,
    temperature: float | None = None, png: Path_ | None = None, call: Call | None = None,
    progress: Progress | None = None,
) -> MapResult:  # fmt: skip
    """Read a map file and convert it to another format or unit.

    path : map file; output : file to write, in the format given by the suffix; png : picture of the slices to write
    unit : unit of the result; by default that of the file, or hartree/e in a cube file. from_unit : unit of the values
        in `path`, if the file does not name it
    temperature : K, for the unit kT/e of the output, or of `path` if the file does not name it
    call : function that returns metadata about the call for a path, to be written to files
    progress : called with the written fraction, 0 to 1

    Returns a MapResult. Raises FormatError for files that cannot be read or written, InputError for incompatible units.

    >>> pele_ocl.potmap("data/structures/trialanine.pdb", spacing=3, output="map.dx").map.unit
    'kcal/mol/e'
    >>> pele_ocl.convert("map.dx", "map.ccp4", unit="kT/e", temperature=300).map.unit
    'kT/e'
    """
    if output is not None:
        require_map_suffix(arguments.file_path(output, "output"))
    if png is not None:
        require_png(arguments.file_path(png, "png"))
    if unit is not None:
        arguments.text("unit", unit)
    if temperature is not None:
        arguments.number("temperature", temperature, "a number in K")
    source = read_file(arguments.file_path(path))
    before = with_unit(source.path, read_map(source), from_unit)
    map_ = _in_unit(source.path, before, unit, temperature)
    map_ = map_ if output is None else as_written(output, map_, unit)
    others = read_extra_maps(source)
    if others and output is not None and not holds_several(output):
        note(f"Note: {output}: contains one map; use .h5 to write {', '.join(others)} of {source}")
        others = {}
    extra = {name: _in_step(other, before, map_) for name, other in others.items()}
    found = MapResult(map_, (source,), extra, attributes=provenance(source, call), unit=unit)
    if output is not None:
        found.save(output, progress=progress)
    if png is not None:
        found.save(png)
    return found


@arguments.checked
def mapmath(
    *terms: Map | Path_, mean: bool = False, scale: float = 1.0, onto_first: bool = False, output: Path_ | None = None,
    png: Path_ | None = None, call: Call | None = None, progress: Progress | None = None,
) -> MapResult:  # fmt: skip
    """Add and subtract maps, point by point.

    terms : Maps or map files, separated by "+" or "-": `mapmath("a.dx", "-", "b.dx")`
    mean : True to divide the sum by the number of maps; the signs are then optional
    scale : factor applied to the result
    onto_first : True to interpolate the other maps at the points of the first, in the region covered by all maps
    output : map file to write; png : picture of the slices to write
    call : function that returns metadata about the call for a path, to be written to files
    progress : called with the written fraction, 0 to 1

    Returns a MapResult, in the unit of the first map. Raises InputError for missing or extra signs, for maps on
    different grids, and for units that cannot be converted.

    >>> map_ = pele_ocl.potmap("data/structures/trialanine.pdb", spacing=3).map
    >>> difference = pele_ocl.mapmath(map_, "-", map_)
    >>> float(abs(difference.map.values).max())
    0.0
    """
    arguments.number("scale", scale)
    signs, given = _parsed(terms, arguments.flag("mean", mean))
    if output is not None:
        require_map_suffix(arguments.file_path(output, "output"))
    if png is not None:
        require_png(arguments.file_path(png, "png"))
    read = [each if isinstance(each, Map) else read_file(arguments.file_path(each, "a map")) for each in given]
    sources = tuple(each for each in read if isinstance(each, InputFile))
    factors = [sign * scale / (len(given) if mean else 1) for sign in signs]
    maps = [each if isinstance(each, Map) else read_map(each) for each in read]
    names = [repr(each) if isinstance(each, Map) else str(each) for each in given]
    try:
        found = combine_maps(maps, factors, onto_first=onto_first)
    except InputError as error:
        raise InputError(f"{', '.join(names)}: {error}") from None
    notes = _notes(maps, found)
    for sentence in notes:
        note(f"Note: {sentence}")
    words = " ".join(repr(term) if isinstance(term, Map) else str(term) for term in terms)
    of_call = provenance(sources[0], call) if sources else provenance(None)
    attributes = {
        "inputs": [str(source) for source in sources], "inputs_sha256": [source.sha256 for source in sources],
        "terms": words, **{key: value for key, value in of_call.items() if not key.startswith("input")},
    }  # fmt: skip
    result = MapResult(found, sources, facts={"maps": names, "factors": factors, "notes": notes}, attributes=attributes)
    if output is not None:
        result.save(output, progress=progress)
    if png is not None:
        result.save(png)
    return result


@dataclass(frozen=True, eq=False)
class Samples(Framed):
    """Values of a map at points.

    positions : (n, 3) A; values : (n,) in the unit of the map, NaN outside the map
    labels : Labels if the points are atoms; source, points : files of the map and of the points, if any
    call : function that returns metadata about the call, for files

    >>> map_ = pele_ocl.potmap("data/structures/trialanine.pdb", spacing=2, min_distance=1.0).map
    >>> samples = pele_ocl.sample_map(map_, "data/structures/trialanine.pdb")
    >>> samples.table()["atom"][0].item()
    'A:ALA1:N'
    """

    map: Map
    positions: Floats
    values: Floats
    labels: Labels | None = None
    source: InputFile | None = None
    points: InputFile | None = None
    call: Call | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Samples({len(self):,} points of {self.map!r})"

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the text that the command prints: the value at each point, and the summary."""
        rows = [
            (name, *(f"{coordinate:.3f}" for coordinate in position), f"{value:,.4f}")
            for name, position, value in zip(self._names(), self.positions.tolist(), self.values.tolist(), strict=True)
        ]
        point = "point" if self.labels is None else "atom"
        heads = (point, "x A", "y A", "z A", one_line(self.map.unit) or "value")
        return f"{text_table(heads, rows, '<>>>>')}\n\n{self.summary()}"

    def summary(self) -> str:
        """Return the number of points, and the smallest, largest and mean value, in one line."""
        inside = self.values[np.isfinite(self.values)]
        n_outside = len(self) - len(inside)
        missing = f", {n_outside:,} of them outside the map" if n_outside else ""
        if not len(inside):
            return f"{counted(len(self), 'point')}{missing}"
        spread = f"{inside.min():,.4f} to {inside.max():,.4f}, mean {fmean(inside.tolist()):,.4f}"
        return f"{counted(len(self), 'point')}{missing}: {spread} {one_line(self.map.unit)}".rstrip()

    def _names(self) -> list[str]:
        return [str(k + 1) if self.labels is None else self.labels.atom(k) for k in range(len(self))]

    def _columns(self) -> dict[str, Any]:
        return {} if self.labels is None else columns_of(self.labels)

    def table(self) -> Report:
        """Table of the name, position and value of each point."""
        x, y, z = self.positions.T
        columns: dict[str, Any] = {
            "point" if self.labels is None else "atom": self._names(), "x": Column(x, "A"), "y": Column(y, "A"),
            "z": Column(z, "A"), "value": Column(self.values, self.map.unit, ",.4f"),
        }  # fmt: skip
        return Report("Values of a map", columns, {"unit": self.map.unit, "temperature": self.map.temperature})

    def to_json(self) -> dict[str, Any]:
        """Return the positions and values as a JSON-compatible dictionary."""
        source, points = self.source, self.points
        return {
            "schema": SCHEMA,
            **({} if source is None else {"map": str(source), "sha256": source.sha256}),
            **({} if points is None else {"points": str(points), "points_sha256": points.sha256}),
            "n_points": len(self),
            "unit": self.map.unit,
            "temperature": self.map.temperature,
            "positions": self.positions.tolist(),
            "values": [value if np.isfinite(value) else None for value in self.values.tolist()],
        }

    def save(self, path: Path_) -> None:
        """Write positions and values as a table: .h5, .csv or .json."""
        columns = {**self._columns(), "position": self.positions, "value": self.values}
        points = {} if self.points is None else {"points": str(self.points), "points_sha256": self.points.sha256}
        attributes = {**provenance(self.source, self.call), **points, "temperature": self.map.temperature}
        inputs = [each for each in (self.source, self.points) if each is not None]
        write_table(arguments.file_path(path), columns, {"position": "A", "value": self.map.unit}, attributes, inputs)


@arguments.checked
def sample_map(
    map_: Map | Path_, points: Atoms | Path_ | Floats, *, model: int | None = None,
    outside: Literal["error", "nan"] = "error", output: Path_ | None = None, call: Call | None = None,
) -> Samples:  # fmt: skip
    """Interpolate a map at points with `sample`.

    map_ : a Map or a map file
    points : Atoms, positions (n, 3) A, a structure file whose atoms are the points, or a .npy, .csv or .txt file with
        x, y and z (A) per line
    model : number of the model in a structure file with several
    outside : "error" to raise InputError for points outside the map, or "nan" to return NaN for them
    output : table to write; call : function that returns metadata about the call for a path, to be written to files

    Returns Samples. Raises FormatError for files that cannot be read or written.

    >>> map_ = pele_ocl.potmap("data/structures/trialanine.pdb", spacing=2, min_distance=1.0).map
    >>> samples = pele_ocl.sample_map(map_, "data/structures/trialanine.pdb")
    >>> samples.values.shape
    (33,)
    >>> samples.save("samples.csv")
    """
    arguments.choice("outside", outside, ("error", "nan"))
    if output is not None:
        require_table_suffix(arguments.file_path(output, "output"))
    source = None if isinstance(map_, Map) else Path(arguments.file_path(map_, "map"))
    if source is not None:
        require_map_suffix(source)
    of_points, labels, where = _points(points, model)
    read = None if source is None else read_file(source)
    found = map_ if isinstance(map_, Map) else read_map(read or "")
    require_map(found)
    try:
        values = sample(found, where, "nan" if outside == "nan" else "raise")
    except InputError as error:
        named = "" if of_points is None else f"{of_points}: "
        raise InputError(f'{named}{error}; `outside="nan"` continues without them') from None
    result = Samples(found, where, values, labels, read, of_points, call)
    if output is not None:
        result.save(output)
    return result


def _points(points: Any, model: int | None) -> tuple[InputFile | None, Labels | None, Floats]:
    """Return the file, the labels if the points are atoms, and the positions (n, 3) A."""
    if isinstance(points, Atoms):
        return None, points.labels, points.positions
    if not isinstance(points, str | PathLike):
        return None, None, arguments.positions_of(points, "points")
    path = arguments.file_path(points, "points")
    if not is_structure(path) and path.suffix.lower() not in POINT_SUFFIXES:
        known = ", ".join([*STRUCTURES, *POINT_SUFFIXES])
        raise FormatError(f"{path}: unknown suffix {path.suffix!r}; points end in {known}")
    source = read_file(path)
    if not is_structure(source):
        return source, None, read_points(source)
    found = read_structure_or_atoms(source, model)
    return source, found.labels, found.positions


def with_unit(source: Path, map_: Map, from_unit: str | None) -> Map:
    """Return a map with its unit, from the file or from the user."""
    if from_unit is None:
        return map_
    arguments.choice("from_unit", from_unit, POTENTIAL_UNITS)
    if map_.unit not in ("", from_unit):
        raise InputError(f"{source}: states that its unit is {map_.unit}, not {from_unit}; leave out `from_unit`")
    found: Map = replace(map_, unit=from_unit)
    return found


def _in_unit(source: Path, map_: Map, unit: str | None, temperature: float | None) -> Map:
    """Convert a map to the requested unit."""
    if temperature is not None and "kT/e" not in (map_.unit, unit):
        raise InputError(f'{source}: `temperature` belongs to the unit kT/e; leave it out, or give `unit="kT/e"`')
    if temperature not in (None, map_.temperature) and None not in (unit, map_.temperature) and unit != "kT/e":
        raise InputError(f"{source}: states that its unit is {map_.full_unit}; leave out `temperature`")
    if unit is not None and not map_.unit:
        raise InputError(f"{source}: does not state its unit; give it as `from_unit`")
    wanted = unit or map_.unit
    return map_.in_unit(wanted, temperature) if wanted in POTENTIAL_UNITS else map_


def _in_step(other: Map, before: Map, after: Map) -> Map:
    """Convert a further map of the file, such as a field, in the same way as the potential."""
    rest = other.unit.removeprefix(before.unit)
    if before.unit not in POTENTIAL_UNITS or rest not in ("", "/A") or not other.unit.startswith(before.unit):
        return other
    converted = replace(other, unit=before.unit, temperature=before.temperature).in_unit(after.unit, after.temperature)
    found: Map = replace(converted, unit=after.unit + rest)
    return found


def _notes(maps: Sequence[Map], found: Map) -> list[str]:
    """Return a note if the result covers only a part of the first map."""
    first = maps[0].grid
    if found.grid.shape == first.shape:
        return []
    points, all_points = (" x ".join(map(str, grid.shape)) for grid in (found.grid, first))
    return [
        f"the maps have {points} of the {all_points} points of the first map in common; the result contains "
        "these points"
    ]


def _parsed(terms: Sequence[Map | Path_], mean: bool) -> tuple[list[float], list[Map | Path_]]:
    """Return the sign of each map, and the maps. Raises InputError for missing or extra signs."""
    signs, maps, sign = list[float](), list[Map | Path_](), 1.0
    is_due = True  # whether a map must follow, not a sign
    for term in terms:
        word = "" if isinstance(term, Map) else str(term)
        if word in _SIGNS:
            if is_due:
                raise KeywordError(f"{word} is not a map; write A - B, or A + B + C")
            sign, is_due = _SIGNS[word], True
            continue
        if not is_due and not mean:
            raise KeywordError(
                f"+ or - is missing before {word or repr(term)}; write A - B, with spaces around the sign"
            )
        signs.append(sign)
        maps.append(term)
        sign, is_due = 1.0, False
    if is_due:
        behind = f" after the last {terms[-1]}" if terms else ""
        raise KeywordError(f"no map{behind}")
    return signs, maps
