"""`pele-ocl sample`: the values of a map at atoms or other points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from ..atoms import Floats, Labels
from ..common.errors import FormatError, InputError
from ..common.inputfile import InputFile, read_file
from ..formats import (
    POINT_SUFFIXES,
    STRUCTURES,
    is_structure,
    read_map,
    read_points,
    read_structure_or_atoms,
    require_map_suffix,
    require_table_suffix,
    write_table,
)
from ..grid import Map
from ..sampling import sample as compute
from .command import INPUT, OUTPUT, EachOnce
from .json_lines import say_map
from .options import debug_option, json_option, model_option
from .report import columns_of, counted, provenance
from .tables import table
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
def sample(
    map_path: Path, points_path: Path, output: Path | None, model: int | None, outside: str, as_json: bool
) -> None:
    """Interpolate values of MAP at POINTS, linearly.

    MAP is a .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5 file. POINTS is a structure, .pdb, .cif or .pqr, whose atoms
    are the points. Or it is a .npy, .csv or .txt file with x, y and z a line, in Angstrom.
    """
    if output is not None:
        require_table_suffix(output)
    require_map_suffix(map_path)
    _require_points_suffix(points_path)
    points, source = read_file(points_path), read_file(map_path)
    positions, labels = _points(points, model)
    map_ = read_map(source)
    try:
        values = compute(map_, positions, "nan" if outside == "nan" else "raise")
    except InputError as error:
        raise InputError(f"{points_path}: {error}; --outside nan goes on without them") from None
    if output is not None:
        columns = {**({} if labels is None else columns_of(labels)), "position": positions, "value": values}
        attributes = {
            **provenance(source), "points": str(points), "points_sha256": points.sha256,
            "temperature": map_.temperature,
        }  # fmt: skip
        write_table(output, columns, {"position": "A", "value": map_.unit}, attributes)
    if as_json:
        say_map(source, {"points": str(points), "points_sha256": points.sha256, **_as_json(map_, positions, values)})
    elif output is None:
        say(_as_text(map_, positions, values, labels))
    else:
        say(_summary(map_, values))


def _require_points_suffix(path: Path) -> None:
    if not is_structure(path) and path.suffix.lower() not in POINT_SUFFIXES:
        known = ", ".join([*STRUCTURES, *POINT_SUFFIXES])
        raise FormatError(f"{path}: unknown suffix {path.suffix!r}; points end in {known}")


def _points(source: InputFile, model: int | None) -> tuple[Floats, Labels | None]:
    """Positions (n, 3), and the labels of the atoms if they are atoms."""
    if is_structure(source):
        found = read_structure_or_atoms(source, model)
        return found.positions, found.labels
    return read_points(source), None


def _as_json(map_: Map, positions: Floats, values: Floats) -> dict[str, Any]:
    return {
        "n_points": len(values),
        "unit": map_.unit,
        "temperature": map_.temperature,
        "positions": positions.tolist(),
        "values": [value if np.isfinite(value) else None for value in values.tolist()],
    }


def _as_text(map_: Map, positions: Floats, values: Floats, labels: Labels | None) -> str:
    names = [str(k + 1) if labels is None else labels.atom(k) for k in range(len(values))]
    rows = [
        (name, *(f"{coordinate:.3f}" for coordinate in position), f"{value:,.4f}")
        for name, position, value in zip(names, positions.tolist(), values.tolist(), strict=True)
    ]
    head = ("point" if labels is None else "atom", "x A", "y A", "z A", one_line(map_.unit) or "value")
    return f"{table(head, rows, '<>>>>')}\n\n{_summary(map_, values)}"


def _summary(map_: Map, values: Floats) -> str:
    inside = values[np.isfinite(values)]
    missing = "" if len(inside) == len(values) else f", {len(values) - len(inside):,} of them outside the map"
    spread = f"{inside.min():,.4f} to {inside.max():,.4f}, mean {inside.mean():,.4f}" if len(inside) else ""
    facts = f": {spread} {one_line(map_.unit)}" if spread else ""
    return f"{counted(len(values), 'point')}{missing}{facts}".rstrip()
