"""`pele-ocl mapmath`: differences, sums, multiples and means of maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..mapmath import mapmath as compute
from .call import Call
from .command import INPUT, OUTPUT, EachOnce
from .map_options import png_option
from .options import debug_option, json_option
from .progress import ProgressLine
from .showing import say_result
from .terminal import one_line, say


@click.command(cls=EachOnce)
@click.argument("terms", metavar="A [- B] [+ C]...", type=INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=OUTPUT, metavar="MAP", help="Write the result: .dx, .cube, .mrc, .h5, ...")
@click.option("--mean", is_flag=True, help="Divide the sum by the number of maps; + between them can be omitted.")
@click.option("--scale", type=float, default=1.0, metavar="F", help="Multiply the result by F.")
@click.option(
    "--onto-first",
    is_flag=True,
    help="Interpolate the other maps at the points of the first. The result covers the points common to all maps.",
)
@png_option
@json_option()
@debug_option
def mapmath(terms: tuple[Path, ...], output: Path | None, as_json: bool, call: Call, **options: Any) -> None:
    """Add and subtract maps, point by point: A - B, A + B + C.

    Maps are .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5 files on one grid. Put spaces around + and -. The result has
    the unit of A; potentials of the others are converted to it.
    """
    with ProgressLine(f"Writing {output}") as progress:
        found = compute(
            *terms, **options, output=output, call=call, progress=progress
        )  # fmt: skip
    if as_json:
        say_result(found.to_json())
    else:
        say("\n".join([one_line(" ".join(map(str, terms))), found.text()]))
