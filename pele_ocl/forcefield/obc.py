"""Reader of OBC tables: the intrinsic radius and the HCT scale factor of each atom of each template.

There are two formats, distinguished by content: PELE's text table, with one atom per row, and peleffy's JSON for OpenFF
ligands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..common.errors import FormatError, printable
from ..common.inputfile import read_file
from ..common.textfiles import lines, number, quoted

Key = tuple[str, str]
ObcTable = dict[Key, tuple[float, float]]


def read_obc(path: str | PathLike[str]) -> ObcTable:
    """Read a table as {(template, atom name): (radius in A, scale)}.

    The columns of text tables are template, atom, type, radius and scale; `#` starts a header. The usual header swaps
    the names of the last two columns, so columns are read by position, and values are checked: radii must be above 1 A
    and scales below 1. Raises FormatError with file and line.
    """
    file = read_file(path)
    text = "".join(lines(file, "parameter"))
    table = _read_json(file.path, text) if text.lstrip().startswith("{") else _read_text(file.path, text)
    if not table:
        raise FormatError(f"{path}: the OBC table contains no row; rows are template, atom, type, radius and scale")
    return table


def is_obc(text: str) -> bool:
    """Return whether a text looks like a table: JSON, or a row of five fields that ends with two numbers."""
    if text.lstrip().startswith("{"):
        return "SolventParameters" in text
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return any(len(row) == 5 and None not in (number(row[3]), number(row[4])) for row in rows)


def lookup(table: Mapping[Key, tuple[float, float]], template: str, atom: str) -> tuple[float, float] | None:
    """Look up the row of an atom.

    Templates without a position letter can use the rows of the isolated residue (HOHZ for HOH).
    """
    return table.get((template, atom)) or table.get((template + "Z", atom))


def _read_text(path: Path, text: str) -> ObcTable:
    table: ObcTable = {}
    known: dict[tuple[str, str], tuple[float, float]] = {}  # thousands of rows contain only a few dozen values
    for line_number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 5:
            fault = f"a row needs template, atom, type, radius and scale, not {len(fields)} fields"
            raise FormatError(f"{path}:{line_number}: {fault}")
        template, atom, _, *texts = fields
        values = known.get((texts[0], texts[1]))
        if values is None:
            values = known[texts[0], texts[1]] = _checked(f"{path}:{line_number}", *texts)
        table[template.upper(), atom.replace("_", "")] = values
    # PELE's generator appends a Z even to names that end with Z: CAZZ is CAZ.
    doubled = {(name[:-1], atom): row for (name, atom), row in table.items() if name.endswith("ZZ")}
    return {**doubled, **table}


def _read_json(path: Path, text: str) -> ObcTable:
    """Read peleffy's ligandParams.txt, in which residue names have no position letter and ligands are isolated."""
    try:
        parameters: Any = json.loads(text)["SolventParameters"]
        residues = {name: atoms for name, atoms in parameters.items() if name not in ("Name", "General")}
        rows = [
            (name.upper(), atom, row["radius"], row["scale"])
            for name in residues
            for atom, row in residues[name].items()
        ]
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}:{error.lineno}: the JSON is damaged ({error.msg}); write the file again") from None
    except (RecursionError, ValueError) as error:  # deeply nested brackets; numbers with thousands of digits
        problem = "brackets are nested too deeply" if isinstance(error, RecursionError) else quoted(str(error))
        raise FormatError(f"{path}: the JSON is damaged ({problem}); write the file again") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{path}: expected SolventParameters with radius and scale of each atom ({quoted(repr(error))})"
        ) from None
    table: ObcTable = {}
    for name, atom, radius, scale in rows:
        values = _checked(f"{path} ({printable(f'{name} {atom}'[:40])})", radius, scale)
        stripped = atom.replace("_", "")
        table[name, stripped] = values
        table.setdefault((name + "Z", stripped), values)
    return table


def _checked(where: str, radius: Any, scale: Any) -> tuple[float, float]:
    try:
        values = number(str(radius)), number(str(scale))
    except ValueError:  # an integer with thousands of digits
        values = None, None
    if values[0] is None or values[1] is None:
        raise FormatError(f"{where}: radius {quoted(radius)} and scale {quoted(scale)} must be numbers")
    if values[0] < 1 < values[1]:
        raise FormatError(
            f"{where}: radius {values[0]:g} and scale {values[1]:g} seem to be exchanged; the radius (A) comes first"
        )
    if not (1 < values[0] < 10 and 0 < values[1] < 1):
        raise FormatError(
            f"{where}: radius {values[0]:g} or scale {values[1]:g} is out of range; radii are 1 to 10 A, scales 0 to 1"
        )
    return values[0], values[1]
