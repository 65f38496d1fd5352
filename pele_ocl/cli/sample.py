"""`pele-ocl sample`: interpolation of maps at atoms or other points."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from ..jobs.texts import counted
from ..mapmath import Samples
from ..mapmath import sample_map as compute
from ..report import text_table as table
from .call import Call
from .command import INPUT, OUTPUT, EachOnce
from .options import debug_option, json_option, model_option
from .showing import say_result
from .terminal import one_line, say


@click.command(cls=EachOnce)
@click.argument("map_path", metavar="MAP", type=INPUT)
@click.argument("points_path", metavar="POINTS", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", help="Write the values as a table: .h5, .csv or .json.")
@model_option
@click.option(
    "--outside", type=click.Choice(["error", "nan"]), default="error", show_default=True,
    help="Value of a point outside the map.",
)  # fmt: skip
@json_option()
@debug_option
def sample(map_path: Path, points_path: Path, output: Path | None, as_json: bool, call: Call, **options: Any) -> None:
    """Interpolate values of MAP at POINTS, linearly.

    MAP is a .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5 file. POINTS is a structure, .pdb, .cif or .pqr, whose atoms
    are the points. Or it is a .npy, .csv or .txt file with x, y and z a line, in Angstrom.
    """
    found = compute(map_path, points_path, **options, output=output, call=call)
    if as_json:
        say_result(found.to_json())
    else:
        say(_as_text(found) if output is None else _summary(found))


def _as_text(found: Samples) -> str:
    map_, labels, values = found.map, found.labels, found.values
    names = [str(k + 1) if labels is None else labels.atom(k) for k in range(len(values))]
    rows = [
        (name, *(f"{coordinate:.3f}" for coordinate in position), f"{value:,.4f}")
        for name, position, value in zip(names, found.positions.tolist(), values.tolist(), strict=True)
    ]
    head = ("point" if labels is None else "atom", "x A", "y A", "z A", one_line(map_.unit) or "value")
    return f"{table(head, rows, '<>>>>')}\n\n{_summary(found)}"


def _summary(found: Samples) -> str:
    values, map_ = found.values, found.map
    inside = [value for value in values.tolist() if math.isfinite(value)]
    missing = "" if len(inside) == len(values) else f", {len(values) - len(inside):,} of them outside the map"
    low, high, mean = (f"{of(inside):,.4f}" if inside else "" for of in (min, max, fmean))
    spread = f"{low} to {high}, mean {mean}" if inside else ""
    facts = f": {spread} {one_line(map_.unit)}" if spread else ""
    return f"{counted(len(values), 'point')}{missing}{facts}".rstrip()
