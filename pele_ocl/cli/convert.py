"""`pele-ocl convert`: a map in another format or unit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..common.errors import InputError
from ..common.inputfile import read_file
from ..formats import read_map, require_map_suffix, write_map
from ..formats.maps import as_written, holds_several, read_extra_maps
from ..formats.maps.pictures import draw_slices, require_png
from ..grid import Map
from ..units import POTENTIAL_UNITS
from .command import INPUT, OUTPUT, EachOnce
from .json_lines import say_map
from .options import debug_option, from_units_option, json_option, png_option
from .progress import ProgressLine
from .report import map_facts, map_lines, provenance
from .terminal import note, one_line, say

_UNIT = click.Choice(POTENTIAL_UNITS)


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.argument("target", metavar="OUT", type=OUTPUT)
@click.option("--units", type=_UNIT, help="Unit to convert to; by default IN's, but hartree/e in a cube file.")
@from_units_option("IN")
@click.option(
    "--temperature", type=float, help="Temperature of the unit kT/e, K: of OUT, or of IN if the file does not name it."
)
@png_option
@json_option()
@debug_option
def convert(
    path: Path, target: Path, units: str | None, from_units: str | None, temperature: float | None,
    png: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Write the map in IN as OUT, in the format that OUT's suffix says.

    Formats are OpenDX (.dx, .dx.gz), Gaussian cube (.cube, .cub), MRC/CCP4 (.mrc, .ccp4, .map) and HDF5 (.h5).
    """
    require_map_suffix(target)
    if png is not None:
        require_png(png)
    source = read_file(path)
    before = with_unit(path, read_map(source), from_units)
    map_ = as_written(target, _in_unit(path, before, units, temperature), units)
    others = read_extra_maps(source)
    if others and not holds_several(target):
        note(f"Note: {target}: holds one map; {', '.join(others)} of {path} go into .h5 files")
        others = {}
    extra = {name: _in_step(other, before, map_) for name, other in others.items()}
    with ProgressLine(f"Writing {target}") as progress:
        write_map(target, map_, unit=units, attributes=provenance(source), extra=extra, progress=progress)
    if png is not None:
        draw_slices(png, map_)
    if as_json:
        say_map(source, map_facts(map_))
    else:
        say("\n".join([f"{one_line(str(path))} -> {one_line(str(target))}", *map_lines(map_)]))


def with_unit(source: Path, map_: Map, from_units: str | None) -> Map:
    """Give the map its unit, which the file or the user says."""
    if from_units is None:
        return map_
    if map_.unit not in ("", from_units):
        raise InputError(f"{source}: says that its unit is {map_.unit}, not {from_units}; leave out --from-units")
    return replace(map_, unit=from_units)


def _in_unit(source: Path, map_: Map, units: str | None, temperature: float | None) -> Map:
    """Convert the map to the unit that is asked for."""
    if temperature is not None and "kT/e" not in (map_.unit, units):
        raise InputError(f"{source}: --temperature belongs to the unit kT/e; leave it out, or give --units kT/e")
    if temperature not in (None, map_.temperature) and None not in (units, map_.temperature) and units != "kT/e":
        raise InputError(f"{source}: says that its unit is {map_.full_unit}; leave out --temperature")
    if units is not None and not map_.unit:
        raise InputError(f"{source}: does not say its unit; name it with --from-units")
    wanted = units or map_.unit
    return map_.in_unit(wanted, temperature) if wanted in POTENTIAL_UNITS else map_


def _in_step(other: Map, before: Map, after: Map) -> Map:
    """A further map of the file, a field say, in the unit that the potential got."""
    rest = other.unit.removeprefix(before.unit)
    if before.unit not in POTENTIAL_UNITS or rest not in ("", "/A") or not other.unit.startswith(before.unit):
        return other
    converted = replace(other, unit=before.unit, temperature=before.temperature).in_unit(after.unit, after.temperature)
    return replace(converted, unit=after.unit + rest)
