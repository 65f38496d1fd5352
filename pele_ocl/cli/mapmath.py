"""`pele-ocl mapmath`: the difference, sum, multiple or mean of maps."""

from __future__ import annotations

from pathlib import Path

import click

from ..common.errors import InputError
from ..common.inputfile import InputFile, read_file
from ..formats import read_map, require_map_suffix, write_map
from ..formats.maps.pictures import draw_slices, require_png
from ..grid import Map
from ..mapmath import combine_maps
from .command import INPUT, OUTPUT, EachOnce
from .json_lines import say_map
from .options import debug_option, json_option, png_option
from .progress import ProgressLine
from .report import call_facts, map_facts, map_lines
from .terminal import note, one_line, say

_SIGNS = {"+": 1.0, "-": -1.0}


@click.command(cls=EachOnce)
@click.argument("terms", metavar="A [- B] [+ C]...", type=INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=OUTPUT, metavar="MAP", help="Write the result: .dx, .cube, .mrc, .h5, ...")
@click.option("--mean", is_flag=True, help="Divide the sum by the number of maps; + between them can be left out.")
@click.option("--scale", type=float, default=1.0, metavar="F", help="Multiply the result by F.")
@click.option(
    "--onto-first",
    is_flag=True,
    help="Interpolate the other maps at the points of the first. The result is the part that all maps cover.",
)
@png_option
@json_option()
@debug_option
def mapmath(
    terms: tuple[Path, ...], output: Path | None, mean: bool, scale: float, onto_first: bool, png: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Add and subtract maps, point by point: A - B, A + B + C.

    Maps are .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5 files on one grid, with blanks around + and -. The result is
    in the unit of A, into which the potentials of others are converted.
    """
    signs, paths = _parsed(terms, mean)
    if output is not None:
        require_map_suffix(output)
    if png is not None:
        require_png(png)
    sources = [read_file(path) for path in paths]
    factors = [sign * scale / (len(paths) if mean else 1) for sign in signs]
    maps = [read_map(source) for source in sources]
    try:
        found = combine_maps(maps, factors, onto_first=onto_first)
    except InputError as error:
        raise InputError(f"{', '.join(map(str, paths))}: {error}") from None
    notes = _notes(maps, found)
    for sentence in notes:
        note(f"Note: {sentence}")
    if output is not None:
        with ProgressLine(f"Writing {output}") as progress:
            write_map(output, found, attributes=_facts(sources, terms), progress=progress)
    if png is not None:
        draw_slices(png, found)
    if as_json:
        of_all = {"maps": [str(path) for path in paths], "factors": factors, "notes": notes}
        say_map(sources[0], {**of_all, **map_facts(found)})
    else:
        say("\n".join([one_line(" ".join(map(str, terms))), *map_lines(found)]))


def _notes(maps: list[Map], found: Map) -> list[str]:
    """A sentence where the result is a part of the first map."""
    first = maps[0].grid
    if found.grid.shape == first.shape:
        return []
    points, all_points = (" x ".join(map(str, grid.shape)) for grid in (found.grid, first))
    return [f"the maps have {points} of the first one's {all_points} points in common; the result has these"]


def _parsed(terms: tuple[Path, ...], mean: bool) -> tuple[list[float], list[Path]]:
    """Read the sign of each map, and the maps. Raises UsageError for a sign too many or too few."""
    signs, paths, sign = list[float](), list[Path](), 1.0
    is_due = True  # a map, not a sign
    for term in terms:
        if str(term) in _SIGNS:
            if is_due:
                raise click.UsageError(f"{term} stands where a map is due; write A - B, or A + B + C")
            sign, is_due = _SIGNS[str(term)], True
            continue
        if not is_due and not mean:
            raise click.UsageError(f"there is no + or - before {term}; write A - B, with blanks around the sign")
        signs.append(sign)
        paths.append(term)
        sign, is_due = 1.0, False
    if is_due:
        raise click.UsageError(f"there is no map behind the last {terms[-1]}")
    return signs, paths


def _facts(sources: list[InputFile], terms: tuple[Path, ...]) -> dict[str, object]:
    """Tell how the map was made."""
    return {
        "inputs": [str(source) for source in sources], "inputs_sha256": [source.sha256 for source in sources],
        "terms": " ".join(map(str, terms)), **call_facts(),
    }  # fmt: skip
