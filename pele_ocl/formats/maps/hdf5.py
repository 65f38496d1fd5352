"""HDF5 maps: one dataset (nz, ny, nx) per map, with attributes origin, spacing, unit, title and temperature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from ...common.errors import FormatError
from ...common.inputfile import InputFile
from ...grid import Grid, Map
from ..hdf5 import attribute_of, opened_hdf5, values_of, write_attributes, writing_hdf5
from ..registry import Details, MapFormat
from .text_files import on_one_line

DATASET = "potential"


def write_hdf5(path: Path, map_: Map, details: Details) -> None:
    """Write the map as the dataset `potential`, further maps by their names, and the attributes at the root."""
    with writing_hdf5(path, details.progress) as file:
        for name, written in {DATASET: map_, **details.extra}.items():
            dataset = file.create_dataset(name, data=written.values)
            facts = {name: getattr(written, name) for name in ("unit", "title", "temperature")}
            write_attributes(dataset, {"origin": written.grid.origin, "spacing": written.grid.spacing, **facts})
        write_attributes(file, details.attributes)


@np.errstate(invalid="ignore")  # NaN is rejected later
def read_hdf5(file: InputFile) -> Map:
    """Read the map in the dataset `potential`, or in the only dataset.

    Raises FormatError for other files, and if there is no map, or several without one named `potential`.
    """
    with opened_hdf5(file) as opened:
        return _map(file, opened, _main(file, opened))


def read_extra_hdf5(file: InputFile) -> dict[str, Map]:
    """Read the other maps of the file, by name of the dataset."""
    with opened_hdf5(file) as opened:
        main = _main(file, opened)
        return {name: _map(file, opened, name) for name in _names(opened) if name != main}


def _names(opened: h5py.File) -> list[str]:
    """Return the names of the datasets that are maps."""
    return [name for name, item in opened.items() if isinstance(item, h5py.Dataset) and item.ndim == 3]


def _main(file: InputFile, opened: h5py.File) -> str:
    """Return the name of the main map: `potential`, or the only one."""
    names = _names(opened)
    if DATASET not in names and len(names) != 1:
        raise FormatError(f"{file}: has no dataset '{DATASET}' of three dimensions, (nz, ny, nx)")
    return DATASET if DATASET in names else names[0]


def _map(file: InputFile, opened: h5py.File, name: str) -> Map:
    dataset = opened[name]

    def attribute(fact: str) -> NDArray[Any] | str | None:
        own = attribute_of(dataset, fact, file)
        return attribute_of(opened, fact, file) if own is None else own

    if dataset.dtype.kind not in "iuf":
        raise FormatError(f"{file}: the dataset {dataset.name} contains no real numbers")
    origin, spacing = (_lengths(file, dataset.name, fact, attribute(fact)) for fact in ("origin", "spacing"))
    kind = np.float64 if dataset.dtype.itemsize > 4 else np.float32
    grid = Grid(origin, spacing, dataset.shape[::-1])
    kelvin = attribute("temperature")
    is_number = isinstance(kelvin, np.ndarray) and kelvin.dtype.kind in "iuf" and kelvin.size == 1
    return Map.owning(
        grid,
        values_of(dataset, file).astype(kind, copy=False),
        unit=_text(attribute("unit")),
        title=_text(attribute("title")),
        temperature=float(np.asarray(kelvin).item()) if is_number else None,
    )


def _lengths(file: InputFile, dataset: str, fact: str, value: NDArray[Any] | str | None) -> NDArray[Any]:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
        raise FormatError(f"{file}: the dataset {dataset} has no attribute {fact}, in Angstrom")
    return value


def _text(value: NDArray[Any] | str | None) -> str:
    """Convert an attribute to a printable line."""
    return "" if value is None else on_one_line(str(value))


FORMAT = MapFormat(read_hdf5, write_hdf5, read_extra=read_extra_hdf5)
