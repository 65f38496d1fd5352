"""Maps in HDF5: one dataset (nz, ny, nx) a map, with the attributes origin, spacing, unit, title and temperature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ...errors import FormatError
from ...grid import Grid, Map
from ..writing import write_attributes
from .notes import Details

DATASET = "potential"


def write_hdf5(path: Path, map_: Map, details: Details) -> None:
    """Write the map as dataset `potential`, further maps by their names, and the attributes at the root."""
    # Before version 1.8 of the file format an attribute was limited to 64 KiB.
    with h5py.File(path, "w", libver=("v108", "latest")) as file:
        for name, written in {DATASET: map_, **details.extra}.items():
            dataset = file.create_dataset(name, data=written.values)
            facts = {name: getattr(written, name) for name in ("unit", "title", "temperature")}
            write_attributes(dataset, {"origin": written.grid.origin, "spacing": written.grid.spacing, **facts})
        write_attributes(file, details.attributes)


def read_hdf5(path: Path) -> Map:
    """The map of the dataset `potential`, or of the only dataset there is.

    Raises FormatError for what is not HDF5, or has no map or several, none of them `potential`.
    """
    with _opened(path) as file:
        return _map(path, file[_main(path, file)])


def read_extra_hdf5(path: Path) -> dict[str, Map]:
    """The other maps of the file, by the names of their datasets."""
    with _opened(path) as file:
        main = _main(path, file)
        return {name: _map(path, file[name]) for name in _names(file) if name != main}


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    if not path.is_file():
        raise FormatError(f"{path}: {'a folder; name a file in it' if path.is_dir() else 'no such file'}")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError) as error:
        raise FormatError(f"{path}: cannot be read as HDF5 ({error})") from None


def _names(file: h5py.File) -> list[str]:
    """Of the datasets that are maps."""
    return [name for name, item in file.items() if isinstance(item, h5py.Dataset) and item.ndim == 3]


def _main(path: Path, file: h5py.File) -> str:
    """The name of the map that counts: `potential`, or the only one."""
    names = _names(file)
    if DATASET not in names and len(names) != 1:
        raise FormatError(f"{path}: has no dataset '{DATASET}' of three dimensions, (nz, ny, nx)")
    return DATASET if DATASET in names else names[0]


def _map(path: Path, dataset: Any) -> Map:
    attributes = dict(dataset.file.attrs) | dict(dataset.attrs)
    for name in ("origin", "spacing"):
        if name not in attributes or np.asarray(attributes[name]).dtype.kind not in "iuf":
            raise FormatError(f"{path}: the dataset {dataset.name} lacks the attribute {name}, in Angstrom")
    if dataset.dtype.kind not in "iuf":
        raise FormatError(f"{path}: the dataset {dataset.name} holds no real numbers")
    kind = np.float64 if dataset.dtype.itemsize > 4 else np.float32
    grid = Grid(attributes["origin"], attributes["spacing"], dataset.shape[::-1])
    kelvin = np.asarray(attributes.get("temperature", ""))
    return Map(
        grid,
        dataset[()].astype(kind, copy=False),
        unit=_text(attributes.get("unit", "")),
        title=_text(attributes.get("title", "")),
        temperature=float(kelvin) if kelvin.dtype.kind in "iuf" and kelvin.size == 1 else None,
    )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
