"""`pele-ocl convert`: a map in another format or unit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from ..errors import InputError
from ..formats import read_map, refuse_target, require_map_suffix, write_map
from ..formats.maps import as_written
from ..grid import Map
from ..pictures import draw_slices, require_png
from ..units import POTENTIAL_UNITS
from .options import PATH, debug_option
from .report import map_facts, map_lines, provenance

_UNIT = click.Choice(POTENTIAL_UNITS)


@click.command()
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@click.option("--unit", type=_UNIT, help="Unit to convert to; by default IN's, but hartree/e in a cube file.")
@click.option("--from-unit", type=_UNIT, help="Unit of the values in IN, where the file does not say it.")
@click.option("--temperature", type=float, help="K, where kT/e is meant and IN does not say at which temperature.")
@click.option("--png", type=PATH, metavar="FILE", help="Draw the three central slices; needs matplotlib.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@debug_option
def convert(
    source: Path, target: Path, unit: str | None, from_unit: str | None, temperature: float | None,
    png: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Write the map in IN as OUT, in the format that OUT's suffix says.

    Formats are OpenDX (.dx, .dx.gz), Gaussian cube (.cube, .cub), MRC/CCP4 (.mrc, .ccp4, .map) and HDF5 (.h5).
    """
    require_map_suffix(target)
    refuse_target(target, [source])
    if png is not None:
        require_png(png)
        refuse_target(png, [source])
    map_ = as_written(target, _in_unit(source, read_map(source), unit, from_unit, temperature), unit)
    write_map(target, map_, unit=unit, attributes=provenance(source), inputs=[source])
    if png is not None:
        draw_slices(png, map_, [source, target])
    click.echo(json.dumps(map_facts(map_)) if as_json else "\n".join([f"{source} -> {target}", *map_lines(map_)]))


def _in_unit(source: Path, map_: Map, unit: str | None, from_unit: str | None, temperature: float | None) -> Map:
    """The map in the unit that is asked for."""
    if from_unit is not None:
        if map_.unit not in ("", from_unit):
            raise InputError(f"{source}: says that its unit is {map_.unit}, not {from_unit}; leave out --from-unit")
        map_ = replace(map_, unit=from_unit)
    if map_.temperature is None:
        map_ = replace(map_, temperature=temperature)
    if unit is None:
        return map_
    if not map_.unit:
        raise InputError(f"{source}: does not say its unit; name it with --from-unit")
    return map_.in_unit(unit, temperature)
