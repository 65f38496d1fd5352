"""`pele-ocl sample`: interpolation of maps at atoms or other points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..mapmath import sample_map as compute
from .call import Call
from .command import INPUT, OUTPUT, EachOnce
from .options import debug_option, json_option, model_option
from .showing import say_result
from .terminal import say


@click.command(cls=EachOnce)
@click.argument("map_path", metavar="MAP", type=INPUT)
@click.argument("points_path", metavar="POINTS", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", help="Write the values as a table: .h5, .csv or .json.")
@model_option
@click.option(
    "--outside", type=click.Choice(["error", "nan"]), default="error", show_default=True,
    help="Stop with an error at points outside the map, or return nan for them.",
)  # fmt: skip
@json_option()
@debug_option
def sample(map_path: Path, points_path: Path, output: Path | None, as_json: bool, call: Call, **options: Any) -> None:
    """Interpolate values of MAP linearly at POINTS.

    MAP is a .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5 file. POINTS is a structure, .pdb, .cif or .pqr, whose atoms
    are the points, or a .npy, .csv or .txt file with x, y and z per line, in Angstrom.
    """
    found = compute(map_path, points_path, **options, output=output, call=call)
    if as_json:
        say_result(found.to_json())
    else:
        say(found.text() if output is None else found.summary())
