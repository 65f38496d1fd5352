"""`pele-ocl convert`: conversion of maps to other formats and units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..mapmath import convert as compute
from .call import Call
from .command import INPUT, OUTPUT, EachOnce
from .map_options import from_unit_option, png_option, unit_option
from .options import debug_option, json_option
from .progress import ProgressLine
from .showing import say_result
from .terminal import one_line, say


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.argument("output", metavar="OUT", type=OUTPUT)
@unit_option("Unit to convert to; by default IN's, but hartree/e in a cube file.")
@from_unit_option("IN")
@click.option(
    "--temperature", type=float, help="Temperature of the unit kT/e, K: of OUT, or of IN if the file does not name it."
)
@png_option
@json_option()
@debug_option
def convert(path: Path, output: Path, as_json: bool, call: Call, **options: Any) -> None:
    """Write the map in IN as OUT, in the format given by OUT's suffix.

    Formats are OpenDX (.dx, .dx.gz), Gaussian cube (.cube, .cub), MRC/CCP4 (.mrc, .ccp4, .map) and HDF5 (.h5).
    """
    with ProgressLine(f"Writing {output}") as progress:
        found = compute(path, output, **options, call=call, progress=progress)
    if as_json:
        say_result(found.to_json())
    else:
        say("\n".join([f"{one_line(str(path))} -> {one_line(str(output))}", found.text()]))
