"""Result files: tables as HDF5, CSV or JSON, and the rule that no half-written file is ever left behind."""

from __future__ import annotations

import csv
import errno
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import FormatError

Columns = Mapping[str, NDArray[Any]]
Units = Mapping[str, str]
Attributes = Mapping[str, object]


class JsonText(str):
    """An attribute that is JSON already: a text in other formats, but the value that it stands for in JSON files."""

    __slots__ = ()


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_CSV_BLOCK = 65_536


@contextmanager
def replacing(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> Iterator[Path]:
    """A temporary path in the folder of `path` that takes its name when the block ends without an exception.

    On any exception, KeyboardInterrupt included, the temporary file is removed and the file that was there before
    stays as it was. A symbolic link keeps pointing where it did; the file behind it is replaced.

    inputs : files that are read, which `path` must not be

    Raises FormatError if the folder does not exist or cannot be written to, or `path` is no regular file or an input.
    """
    refuse_target(path, inputs)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.stem[:64]}-{secrets.token_hex(6)}{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.errno in _FULL or str(temporary) in str(error)):
            reason = os.strerror(error.errno) if error.errno else "the file system refuses it"
            raise FormatError(f"{path}: cannot be written: {reason}") from error
        raise


def write_table(
    path: str | PathLike[str],
    columns: Mapping[str, ArrayLike],
    units: Units,
    attributes: Attributes,
    inputs: Iterable[str | PathLike[str]] = (),
) -> None:
    """Write columns of equal length, one row an atom, as HDF5, CSV or JSON; the suffix says which.

    path : file ending in a key of TABLE_WRITERS
    columns : name -> (n,) or (n, k) numbers, or (n,) texts
    units : name of a column -> its unit, for those that have one
    attributes : what else to record (program, parameters, totals); mappings may be nested
    inputs : files that are read, which `path` must not be

    HDF5 has a dataset a column with the attribute `unit`, and the attributes at the root, nested names joined by
    points. CSV begins with `# name: value` lines; its header has the units, `born_radius [A]`, and a column (n, 3) is
    split into _x, _y and _z. JSON is one object: the attributes, `units` and `columns`; a number that is not finite
    becomes null, as JSON has none.

    Raises FormatError for an unknown suffix, columns of unequal length, or a folder that cannot be written to.
    """
    suffix = require_table_suffix(path)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FormatError(f"{path}: columns of one table have different lengths: {lengths}")
    with replacing(path, inputs) as temporary:
        TABLE_WRITERS[suffix](temporary, arrays, units, attributes)


def require_table_suffix(path: str | PathLike[str]) -> str:
    """The suffix of a table file; raises FormatError unless it is a key of TABLE_WRITERS."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_WRITERS:
        raise FormatError(f"{path}: unknown suffix {suffix!r}; tables end in {', '.join(TABLE_WRITERS)}")
    return suffix


def check_target(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Raise FormatError for a table file that write_table could not write; to be called before any work is done."""
    require_table_suffix(path)
    refuse_target(path, inputs)


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Whether two paths lead to one file, by links or otherwise."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def refuse_overwriting(output: str | PathLike[str], source: str | PathLike[str]) -> None:
    """Raise FormatError if two paths lead to one file."""
    if same_file(output, source):
        raise FormatError(f"{output}: the same file as the input {source}; give the output another name")


def refuse_target(path: str | PathLike[str], inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Raise FormatError for a path that is one of the inputs or that nothing can be written to."""
    for source in inputs:
        refuse_overwriting(path, source)
    try:
        _refuse_place(Path(os.path.realpath(path)), path)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}") from error


def _refuse_place(target: Path, given: str | PathLike[str]) -> None:
    folder = target.parent
    if not folder.is_dir():
        raise FormatError(f"{given}: the folder {folder} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise FormatError(f"{given}: not a regular file; give the output another name")
    if target.exists() and not os.access(target, os.W_OK):
        raise FormatError(f"{given}: no permission to write to it; give the output another name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FormatError(f"{given}: no permission to write into the folder {folder}")


def _flat(attributes: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested mappings as one, their names joined by points; values that are absent left out."""
    flat: dict[str, object] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            flat[prefix + name] = value
    return flat


def _write_hdf5(path: Path, columns: Columns, units: Units, attributes: Attributes) -> None:
    text = h5py.string_dtype("utf-8")
    # Before version 1.8 of the file format an attribute was limited to 64 KiB.
    with h5py.File(path, "w", libver=("v108", "latest")) as file:
        for name, values in columns.items():
            if values.dtype.kind in "UO":
                dataset = file.create_dataset(name, data=values.astype(object), dtype=text)
            else:
                dataset = file.create_dataset(name, data=values)
            if name in units:
                dataset.attrs["unit"] = units[name]
        write_attributes(file, attributes)


def write_attributes(item: Any, attributes: Attributes) -> None:
    """Attributes of an HDF5 file or dataset; nested names joined by points, values that are None left out."""
    text = h5py.string_dtype("utf-8")
    for name, value in _flat(attributes).items():
        array = np.asarray(value)
        is_text = array.dtype.kind in "UO"
        item.attrs.create(name, array.astype(object) if is_text else array, dtype=text if is_text else None)


def _write_csv(path: Path, columns: Columns, units: Units, attributes: Attributes) -> None:
    single = [part for name, values in columns.items() for part in _split(name, values, units.get(name, ""))]
    n_rows = len(single[0][1]) if single else 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        for name, value in flat_texts(attributes).items():
            file.write(f"# {name}: {value}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow([header for header, _ in single])
        for start in range(0, n_rows, _CSV_BLOCK):
            block = [values[start : start + _CSV_BLOCK].tolist() for _, values in single]
            table.writerows(zip(*block, strict=True))


def flat_texts(attributes: Attributes) -> dict[str, str]:
    """Attributes as one line of text each; nested names joined by points, values that are None left out."""
    plain = {name: _json_value(value) for name, value in _flat(attributes).items()}
    texts = {name: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for name, v in plain.items()}
    return {name: " ".join(text.split()) for name, text in texts.items()}


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
    with open(path, "w", encoding="utf-8") as file:
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
