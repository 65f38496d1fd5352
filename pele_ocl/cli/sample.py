"""`pele-ocl sample`: the values of a map at atoms or other points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..atoms import Floats, Labels
from ..errors import FormatError, InputError
from ..formats import (
    POINT_SUFFIXES,
    STRUCTURES,
    check_target,
    is_pqr,
    is_structure,
    read_map,
    read_points,
    read_pqr,
    read_structure,
    write_table,
)
from ..grid import Map
from ..sampling import sample as compute
from .command import EachOnce
from .options import PATH, debug_option
from .report import columns_of, counted, provenance
from .tables import table


@click.command(cls=EachOnce)
@click.argument("map_path", metavar="MAP", type=PATH)
@click.argument("points_path", metavar="POINTS", type=PATH)
@click.option("-o", "--output", type=PATH, metavar="OUT", help="Write the values as a table: .h5, .csv or .json.")
@click.option("--model", type=click.IntRange(min=0), help="Number of the model to read, in a file with several.")
@click.option(
    "--outside", type=click.Choice(["error", "nan"]), default="error", show_default=True,
    help="What to do with points outside the map.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@debug_option
def sample(
    map_path: Path, points_path: Path, output: Path | None, model: int | None, outside: str, as_json: bool
) -> None:
    """Values of MAP at POINTS, linear between the points of MAP.

    MAP is a .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5 file. POINTS is a structure, .pdb, .cif or .pqr, whose atoms
    are the points, or a .npy, .csv or .txt file with x, y and z a line, in Angstrom.
    """
    if output is not None:
        check_target(output, [map_path, points_path])
    positions, labels = _points(points_path, model)
    map_ = read_map(map_path)
    try:
        values = compute(map_, positions, "nan" if outside == "nan" else "raise")
    except InputError as error:
        raise InputError(f"{points_path}: {error}; --outside nan goes on without them") from None
    if output is not None:
        columns = {**({} if labels is None else columns_of(labels)), "position": positions, "value": values}
        attributes = {**provenance(map_path), "points": str(points_path), "temperature": map_.temperature}
        write_table(output, columns, {"position": "A", "value": map_.unit}, attributes, [map_path, points_path])
    if as_json:
        click.echo(json.dumps(_as_json(map_, positions, values), allow_nan=False))
    elif output is None:
        click.echo(_as_text(map_, positions, values, labels))
    else:
        click.echo(_summary(map_, values))


def _points(path: Path, model: int | None) -> tuple[Floats, Labels | None]:
    """Positions (n, 3), and what they are called if they are atoms."""
    if is_pqr(path):
        atoms = read_pqr(path, model)
        return atoms.positions, atoms.labels
    if path.suffix.lower() not in POINT_SUFFIXES:
        if is_structure(path):
            structure = read_structure(path, model)
            return structure.positions, structure.labels
        known = ", ".join([*STRUCTURES, *POINT_SUFFIXES])
        raise FormatError(f"{path}: unknown suffix {path.suffix!r}; points end in {known}")
    return read_points(path), None


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
    head = ("point" if labels is None else "atom", "x A", "y A", "z A", map_.unit or "value")
    return f"{table(head, rows, '<>>>>')}\n\n{_summary(map_, values)}"


def _summary(map_: Map, values: Floats) -> str:
    inside = values[np.isfinite(values)]
    missing = "" if len(inside) == len(values) else f", {len(values) - len(inside):,} of them outside the map"
    facts = (
        f": {inside.min():,.4f} to {inside.max():,.4f}, mean {inside.mean():,.4f} {map_.unit}" if len(inside) else ""
    )
    return f"{counted(len(values), 'point')}{missing}{facts}".rstrip()
