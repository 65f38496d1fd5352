"""Writers of result tables: HDF5, CSV or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common.errors import FormatError, printable
from ..common.paths import file_path
from ..common.writing import refuse_target, replacing
from .hdf5 import encodable, flat, text_array, text_type, write_attributes, writing_hdf5
from .registry import MAPS, STRUCTURES

Columns = Mapping[str, NDArray[Any]]
Units = Mapping[str, str]
Attributes = Mapping[str, object]

_CSV_BLOCK = 65_536
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets evaluate texts that begin with these


class JsonText(str):
    """Attribute in JSON: written as parsed JSON to JSON files, and as text to other formats."""

    __slots__ = ()


def write_table(
    path: str | PathLike[str],
    columns: Mapping[str, ArrayLike],
    units: Units,
    attributes: Attributes,
    inputs: Iterable[str | PathLike[str]] = (),
) -> None:
    """Write columns of equal length as HDF5, CSV or JSON. The suffix determines the format.

    path : file with a suffix in TABLE_WRITERS
    columns : columns by name, (n,) or (n, k) numbers, or (n,) texts; unknown numbers may be masked
    units : units by column name, for columns with a unit
    attributes : metadata such as program, parameters and totals; mappings may be nested
    inputs : files that must not be overwritten

    HDF5 files have one dataset per column with the attribute `unit`. Attributes are at the root; nested names are
    joined by dots. CSV files begin with `# name: value` lines, followed by a header with units, such as `born_radius
    [A]`; columns (n, 3) are split into _x, _y and _z, and an apostrophe precedes texts that begin with =, +, - or @.
    JSON files contain one object with the attributes, `units` and `columns`; numbers that are not finite are null.
    Masked values are empty in CSV, null in JSON and NaN in HDF5.

    Raises FormatError for an unknown suffix, columns of unequal length, or a directory that is not writable.
    """
    suffix = require_table_suffix(path)
    arrays = {name: np.asanyarray(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FormatError(f"{path}: columns of one table have different lengths: {lengths}")
    with replacing(path, inputs) as temporary:
        TABLE_WRITERS[suffix](temporary, arrays, units, attributes)


def require_table_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix of a table file. Raises FormatError unless it is a key of TABLE_WRITERS."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_WRITERS:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; tables end in {', '.join(TABLE_WRITERS)}")
    return suffix


def folder_path(path: str | PathLike[str], of: str = "all files") -> Path:
    """Return the path of an output directory, which need not exist. of : description of the files, for messages

    Raises FormatError for an existing file, and for a new directory with the suffix of a structure, map or table file.
    """
    from .conformation_files import CONFORMATION_FORMATS

    target = file_path(path)
    if target.is_dir():
        return target
    if target.exists():
        raise FormatError(f"{path}: is not a folder; give one for {of}")
    suffix = target.suffix.lower()
    if suffix in TABLE_WRITERS:
        raise FormatError(f"{path}: expected a folder for {of}; `table().save` writes only a table")
    if suffix in {*STRUCTURES, *MAPS, *CONFORMATION_FORMATS}:
        raise FormatError(f"{path}: expected a folder for {of}; give it without {target.suffix}")
    return target


def check_target(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Raise the FormatError of write_table for a path before any work is done."""
    require_table_suffix(path)
    refuse_target(path, inputs)


def _write_hdf5(path: Path, columns: Columns, units: Units, attributes: Attributes) -> None:
    with writing_hdf5(path) as file:
        for name, values in columns.items():
            if values.dtype.kind in "UO":
                dataset = file.create_dataset(name, data=text_array(values), dtype=text_type())
            else:
                known = np.ma.filled(values.astype(np.float64), np.nan) if np.ma.is_masked(values) else values
                dataset = file.create_dataset(name, data=known)
            if name in units:
                dataset.attrs["unit"] = encodable(units[name])
        write_attributes(file, attributes)


def _write_csv(path: Path, columns: Columns, units: Units, attributes: Attributes) -> None:
    single = [part for name, values in columns.items() for part in _split(name, values, units.get(name, ""))]
    n_rows = len(single[0][1]) if single else 0
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        for name, value in flat_texts(attributes).items():
            file.write(f"# {name}: {value}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow([header for header, _ in single])
        for start in range(0, n_rows, _CSV_BLOCK):
            block = [_cells(values[start : start + _CSV_BLOCK]) for _, values in single]
            table.writerows(zip(*block, strict=True))


def _cells(values: NDArray[Any]) -> list[Any]:
    """Return the values of a column, with texts escaped by `guarded`."""
    if values.dtype.kind not in "UO":
        return list(values.tolist())
    return [guarded(str(text)) for text in values.tolist()]


def guarded(text: str) -> str:
    """Convert a text to one printable line, preceded by an apostrophe if a spreadsheet would evaluate it."""
    shown = printable(text).replace("\n", "\\n")
    return f"'{shown}" if text.startswith(_FORMULA) else shown


def unguarded(text: str) -> str:
    """Undo `guarded`, except for escaped control characters."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def flat_texts(attributes: Attributes) -> dict[str, str]:
    """Convert attributes to one printable line each.

    Nested names are joined by dots; None values are omitted.
    """
    plain = {name: _json_value(value) for name, value in flat(attributes).items()}
    texts = {name: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for name, v in plain.items()}
    return {name: printable(" ".join(text.split())) for name, text in texts.items()}


def _split(name: str, values: NDArray[Any], unit: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Split a column into one-dimensional columns, each with a header."""
    bracket = f" [{unit}]" if unit else ""
    if values.ndim == 1:
        yield name + bracket, values
        return
    flat = values.reshape(len(values), -1)
    for k, part in enumerate("xyz" if flat.shape[1] == 3 else range(flat.shape[1])):
        yield f"{name}_{part}{bracket}", flat[:, k]


def _write_json(path: Path, columns: Columns, units: Units, attributes: Attributes) -> None:
    content = {**attributes, "units": {name: units[name] for name in columns if name in units}, "columns": columns}
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        json.dump(_json_value(content), file, ensure_ascii=False, allow_nan=False)
        file.write("\n")


def _json_value(value: object) -> Any:
    """Convert a value to types that JSON supports."""
    if isinstance(value, Mapping):
        return {str(name): _json_value(item) for name, item in value.items()}
    if isinstance(value, JsonText):
        return json.loads(value)
    if isinstance(value, np.ndarray | np.generic):
        finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return value.tolist() if finite else _json_value(value.tolist())
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


TABLE_WRITERS: dict[str, Callable[[Path, Columns, Units, Attributes], None]] = {
    ".h5": _write_hdf5,
    ".csv": _write_csv,
    ".json": _write_json,
}
