"""Result tables as HDF5, CSV or JSON."""

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
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a text that begins so


class JsonText(str):
    """Attribute that is JSON already: a text in other formats, but its value in JSON files."""

    __slots__ = ()


def write_table(
    path: str | PathLike[str],
    columns: Mapping[str, ArrayLike],
    units: Units,
    attributes: Attributes,
    inputs: Iterable[str | PathLike[str]] = (),
) -> None:
    """Write columns of equal length, one row per atom, as HDF5, CSV or JSON; the suffix determines the format.

    path : file ending in a key of TABLE_WRITERS
    columns : name -> (n,) or (n, k) numbers, or (n,) texts; unknown numbers may be masked
    units : name of a column -> its unit, if it has one
    attributes : what else to record (program, parameters, totals); mappings may be nested
    inputs : files that must not be overwritten

    HDF5 files have one dataset per column with the attribute `unit`. Attributes are at the root; nested names are
    joined by points. CSV begins with `# name: value` lines, and its header has the units, `born_radius [A]`. A column
    (n, 3) is split into _x, _y and _z. JSON is one object: the attributes, `units` and `columns`. A number that is not
    finite becomes null, as JSON has none. In CSV an apostrophe precedes a text that begins with =, +, - or @. Masked
    values are empty in CSV, null in JSON and NaN in HDF5.

    Raises FormatError for an unknown suffix, columns of unequal length, or a folder that cannot be written to.
    """
    suffix = require_table_suffix(path)
    arrays = {name: np.asanyarray(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FormatError(f"{path}: columns of one table have different lengths: {lengths}")
    with replacing(path, inputs) as temporary:
        TABLE_WRITERS[suffix](temporary, arrays, units, attributes)


def require_table_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix of a table file; raise FormatError unless it is a key of TABLE_WRITERS."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_WRITERS:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; tables end in {', '.join(TABLE_WRITERS)}")
    return suffix


def folder_path(path: str | PathLike[str], of: str = "all files") -> Path:
    """Return the path of a folder that files are written to; it need not exist yet. of : the files, for messages

    Raises FormatError for what is a file, and for a new folder with the suffix of a file of molecules, maps or tables.
    """
    from .conformation_files import CONFORMATION_FORMATS

    target = file_path(path)
    if target.is_dir():
        return target
    if target.exists():
        raise FormatError(f"{path}: is no folder; name one for {of}")
    suffix = target.suffix.lower()
    if suffix in TABLE_WRITERS:
        raise FormatError(f"{path}: a folder is needed, for {of}; `table().save` writes a table alone")
    if suffix in {*STRUCTURES, *MAPS, *CONFORMATION_FORMATS}:
        raise FormatError(f"{path}: a folder is needed, for {of}; name it without {target.suffix}")
    return target


def check_target(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Raise FormatError for a table file that write_table could not write; to be called before any work is done."""
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
    """A column's values; texts as `guarded` has them."""
    if values.dtype.kind not in "UO":
        return list(values.tolist())
    return [guarded(str(text)) for text in values.tolist()]


def guarded(text: str) -> str:
    """Write a text as one line that a terminal shows, with an apostrophe first if a spreadsheet would compute it."""
    shown = printable(text).replace("\n", "\\n")
    return f"'{shown}" if text.startswith(_FORMULA) else shown


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given; characters that no terminal shows stay escaped."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def flat_texts(attributes: Attributes) -> dict[str, str]:
    """Attributes as one line of text each, as a terminal shows it.

    Nested names are joined by points, values that are None left out.
    """
    plain = {name: _json_value(value) for name, value in flat(attributes).items()}
    texts = {name: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for name, v in plain.items()}
    return {name: printable(" ".join(text.split())) for name, text in texts.items()}


def _split(name: str, values: NDArray[Any], unit: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """A column as columns of one number, each with its header."""
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
    """A value with nothing in it but what JSON has."""
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
