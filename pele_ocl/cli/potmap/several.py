"""Maps of structures, here or by workers, in files that are named by the structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import click

from ...atoms import Atoms
from ...common.inputfile import InputFile, read_file
from ...common.writing import refuse_target
from ...grid import Grid
from ...jobs import Journal, Record
from ...jobs.checks import Checks
from ...jobs.running import run_with
from ...jobs.spec import StructurePath, StructureSpec
from ...reading import MoleculeRead
from ..clock import elapsed
from ..cluster import cluster_options_of
from ..json_lines import exit_for_records, say_records
from ..options import ReadAtoms
from ..physics import medium_facts, medium_lines
from ..progress import ProgressLine
from ..report import Call, counted, duration
from ..tables import table
from ..terminal import note, one_line, say
from .computing import ComputedMaps, Models, announce, of_structure, over_models
from .options import grid_of
from .output import STATISTIC, Pictures, json_of, write

NAME = "{name}"  # in an output: the structure's name without its suffix


@dataclass(frozen=True, eq=False)
class MapSpec(StructureSpec):
    """Maps of structures, and their files.

    place : spacing, padding, origin and shape of the grid; options : of the map
    outputs, pictures : files, with {name} in them if there are several structures
    is_unit_given : True if files are in the unit that was named; call : of the command, which files name
    """

    reading: ReadAtoms
    models: str
    place: tuple[Any, ...]
    combine: str | None
    options: Mapping[str, Any]
    outputs: tuple[Path, ...]
    pictures: Pictures
    is_unit_given: bool
    call: Call

    def of(self, path: Path) -> MapSpec:
        """Put the names of one structure's files in."""
        pictures = replace(
            self.pictures, slices=_named(self.pictures.slices, path), surface=_named(self.pictures.surface, path)
        )
        return replace(self, outputs=_named(self.outputs, path), pictures=pictures)

    def found(self, source: InputFile) -> ComputedMaps:
        """Compute the map of a file, of one model or of all."""
        models = None if self.models == "one" else Models.of(source, self.reading)
        every = [self.reading(source)] if models is None else list(models.atoms.values())
        for atoms in every:
            Checks(source).noted(atoms)
        grid = grid_of(every, *self.place)
        self.announce(every[0], len(every), grid)
        with ProgressLine("Potential map", len(every[0]) * len(grid), "atom evaluations") as progress:
            options = {**self.options, "progress": progress}
            if models is None:
                return of_structure(every[0], grid, options)
            return over_models(models, grid, self.combine, options)

    def announce(self, atoms: Atoms, n_models: int, grid: Grid) -> None:
        """Say how large the map is, and that it is not kept where it has no file."""
        announce(atoms, n_models, grid, dict(self.options))
        if not self.outputs and not self.pictures:
            note("Note: the map is not written to a file; -o map.dx writes it, --png map.png draws it")

    def write(self, source: InputFile, found: ComputedMaps, call: Mapping[str, str] | None = None) -> None:
        """Write the map and draw its pictures; call : facts of the call, by default of the one under way"""
        coordinates = None if found.frames is not None else self.reading.coordinates_of(source.path)
        read = MoleculeRead(source, found.atoms, coordinates=coordinates)
        write(read, self.outputs, found, self.is_unit_given, call)
        self.pictures.write(source, whole(self.outputs), found)

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Compute and write the map of a file, and give it in figures."""
        source = read_file(item)
        own = self.of(source.path)
        own.pictures.require(source.path, whole(own.outputs))
        found = own.found(source)
        files = {"outputs": own.outputs, "png": own.pictures.slices, "surface_png": own.pictures.surface}
        own.write(source, found, self.call.facts(source.path, **files))
        return json_of(found, medium_facts(found.atoms, self.options))


def whole(outputs: tuple[Path, ...]) -> tuple[Path, ...]:
    """Take the outputs that are one file, which a scene may show."""
    return tuple(output for output in outputs if STATISTIC not in output.name)


def report_several(spec: MapSpec, paths: tuple[Path, ...], as_json: bool) -> None:
    """Write the maps of all structures, and report; exit with 1 where one failed."""
    context = click.get_current_context()
    cluster = cluster_options_of(context)
    files = (*spec.outputs, spec.pictures.slices, spec.pictures.surface)
    _require_names(paths, [path for path in files if path is not None])
    wanted: Sequence[StructurePath] = paths if cluster.shard is None else cluster.shard.part(paths, "structures")
    records = list(run_with(spec, wanted, Journal(None, {}), False, cluster.place(context.params["device"])))
    if as_json:
        say_records(records)
    else:
        say(_as_text(records))
    exit_for_records(records)


def _named(target: Any, path: Path) -> Any:
    """An output, or several, with the structure's name put in."""
    if isinstance(target, tuple):
        return tuple(_named(each, path) for each in target)
    return target.with_name(target.name.replace(NAME, path.name.split(".")[0])) if isinstance(target, Path) else target


def _require_names(paths: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Raise for outputs that each structure would write over another's, or over a structure."""
    for output in outputs:
        targets = [_named(output, path) for path in paths]
        if len(set(targets)) < len(paths):
            same = "have one name" if NAME in output.name else f"need {NAME} in it, as in {NAME}{output.suffix}"
            raise click.UsageError(f"{output}: maps of several structures {same}; give each a file of its own")
        for target in targets:
            refuse_target(cast(Path, target), paths)


def _as_text(records: Sequence[Record]) -> str:
    """Make a table of all maps, with the reasons of structures that failed in their rows."""
    n_failed = sum(of.failed for of in records)
    rows = [_row(of) for of in records]
    heads = ("structure", "atoms", "points", "min", "max", "mean")
    units = {str(of["unit"]) for of in records if not of.failed}
    counts = counted(len(records), "map") + (f", of which {n_failed:,} failed" if n_failed else "")
    facts = next((cast(Mapping[str, Any], of["settings"]) for of in records if not of.failed), None)
    fields = ", ".join(dict.fromkeys(str(of["settings"]["forcefield"]) for of in records if not of.failed))
    physics = [] if facts is None else medium_lines({**facts, "forcefield": fields})
    lines = [counts, *physics, "", f"Potential, {', '.join(sorted(units))}", table(heads, rows, "<>>>>>")]
    reasons = [f"{one_line(of.path.name)}: {of.reason}" for of in records if of.failed]
    return "\n".join([*lines, *(["", *reasons] if reasons else []), "", f"In all {duration(elapsed())}"])


def _row(of: Record) -> tuple[str, ...]:
    if of.failed:
        return (one_line(of.path.name), "failed", "", "", "", "")
    shape = " x ".join(map(str, cast(Sequence[int], of["shape"])))
    values = [f"{cast(float, of[name]):,.4g}" for name in ("min", "max", "mean")]
    return (one_line(of.path.name), f"{of['n_atoms']:,}", shape, *values)
