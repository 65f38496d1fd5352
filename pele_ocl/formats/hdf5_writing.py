"""HDF5 files, made in memory and then written as other files are.

libhdf5 crashes the program when a disk is full, and an error of the file system comes as a sentence of its own.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..variant import Progress
from .sparse import SparseFile

if TYPE_CHECKING:
    import h5py


@contextmanager
def writing_hdf5(path: Path, progress: Progress | None = None, *, track_order: bool = False) -> Iterator[Any]:
    """An empty h5py.File, which is written to `path` when the block ends.

    progress : called with the share written; track_order : as h5py has it
    """
    import h5py  # takes a tenth of a second to load

    content = SparseFile()
    # Before version 1.8 of the file format an attribute was limited to 64 KiB.
    with h5py.File(content, "w", libver=("v108", "latest"), track_order=track_order) as file:
        yield file
    size = content.seek(0, io.SEEK_END)
    with open(path, "wb") as target:
        target.truncate(size)
        for start, page in content.pages():
            target.seek(start)
            target.write(page)
            if progress is not None:
                progress((start + len(page)) / size)


def placed_dataset(
    file: h5py.File, name: str, shape: tuple[int, ...], kind: np.dtype[np.generic]
) -> h5py.Dataset:  # fmt: skip
    """A dataset whose bytes have their place in the file from now on; they are zeros, which need no room on disk."""
    import h5py

    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plan.set_obj_track_times(False)  # the same bytes whenever it is written
    place = h5py.h5d.create(
        file.id, name.encode(), h5py.h5t.py_create(kind, logical=True), h5py.h5s.create_simple(shape), dcpl=plan
    )
    return h5py.Dataset(place)


def write_attributes(item: Any, attributes: Mapping[str, object]) -> None:
    """Attributes of an HDF5 file or dataset; nested names joined by points, values that are None left out."""
    for name, value in flat(attributes).items():
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            item.attrs.create(name, text_array(array), dtype=text_type())
        else:
            item.attrs.create(name, array)


def text_type() -> Any:
    """The HDF5 type of texts: UTF-8 of any length."""
    import h5py

    return h5py.string_dtype("utf-8")


def text_array(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Texts as h5py takes them; bytes of file names that are not UTF-8 are escaped."""
    return np.vectorize(encodable, otypes=[object])(values) if values.size else values.astype(object)


def encodable(text: object) -> str:
    """The text with what UTF-8 cannot hold escaped: `\\udcff`."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def flat(attributes: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested mappings as one, their names joined by points; values that are absent left out."""
    result: dict[str, object] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}.")
        elif value is not None:
            result[prefix + name] = value
    return result
