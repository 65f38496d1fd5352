"""HDF5: a dataset for each column, whose place in the file is settled before the first row is written.

A program that is killed then leaves a file that every reader opens: from the first row on nothing but numbers within
datasets changes, no table of contents. `complete` says how many rows are there; the others are NaN.
"""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...formats import appending, replacing
from ...formats.hdf5_writing import write_attributes, writing_hdf5
from ..streaming import Evaluated
from .recorder import Recorder, Settings, error_texts, unit_of

_ERROR_BYTES = 200  # longer reasons are cut
_NOT_TERMS = ("frame", "error", "complete")
_BLOCK = 1 << 16  # rows
_CONTENTS = 1 << 16  # bytes of all tables of contents, which so stand before all rows


class Hdf5Recorder(Recorder):
    """An HDF5 file with the datasets `frame`, the terms, `error` and `complete`; settings are attributes."""

    def __init__(self, path: Path, settings: Settings, frames: range) -> None:
        super().__init__(path, settings, frames)
        self._file: h5py.File | None = None

    def resume(self) -> Evaluated | None:
        if not self.path.exists():
            return None
        try:
            with h5py.File(self.path, "r") as there:
                found = self._found(there)
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be read as HDF5 ({error}); give another name to -o") from None
        if found is not None:
            with appending(self.path):
                self._file = _opened(self.path)
        return found

    def append(self, results: Evaluated) -> None:
        if self._file is None:
            self._file = self._created(results)
        self.require_names([name for name in self._file if name not in _NOT_TERMS], results)
        n = len(next(iter(results.columns.values())))
        rows = slice(self.done, self.done + n)
        for name, values in results.columns.items():
            self._file[name][rows] = values
        if results.errors:
            dataset = self._file["error"]
            place, size = dataset.id.get_offset(), dataset.dtype.itemsize
            with appending(self.path):
                _reserve(self.path, place + rows.start * size, place + rows.stop * size)
            texts = [text.encode()[:_ERROR_BYTES] for text in error_texts(results)]
            dataset[rows] = np.array(texts, h5py.string_dtype("utf-8", _ERROR_BYTES))
        self._file.flush()  # the rows, before the number that says they are there
        self.done += n
        self._file["complete"][()] = self.done
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _created(self, results: Evaluated) -> h5py.File:
        """A file for all rows, none of which is there yet, which has the name when it is whole."""
        with replacing(self.path) as temporary:
            size = self._outlined(temporary, results)
            with open(temporary, "r+b") as stream:
                stream.truncate(size)
            with _opened(temporary) as file:
                self._begin(file, results)
        return _opened(self.path)

    def _outlined(self, path: Path, results: Evaluated) -> int:
        """Write the tables of contents, made in memory; the size that the file has with its datasets, in bytes."""
        n = len(self.frames)
        with writing_hdf5(path, track_order=True, meta_block_size=_CONTENTS) as file:
            write_attributes(file, self.settings)
            for name, values in results.columns.items():
                dataset = _placed(file, name, n, values.dtype)
                if values.dtype.kind == "f":
                    dataset.attrs["unit"] = unit_of(name)
            _placed(file, "frame", n, np.dtype(np.int64))
            file.create_dataset("complete", data=np.int64(0))
            _placed(file, "error", n, h5py.string_dtype("utf-8", _ERROR_BYTES))
            file.flush()
            return int(file.id.get_filesize())

    def _begin(self, file: h5py.File, results: Evaluated) -> None:
        """Write the numbers of the frames, and NaN in all rows."""
        n = len(self.frames)
        for first in range(0, n, _BLOCK):
            rows = slice(first, min(first + _BLOCK, n))
            file["frame"][rows] = np.array(self.frames[rows])
            for name, values in results.columns.items():
                file[name][rows] = np.full(rows.stop - first, np.nan if values.dtype.kind == "f" else 0, values.dtype)

    def _found(self, file: h5py.File) -> Evaluated | None:
        """The rows of an earlier run."""
        if "complete" not in file or "frame" not in file:
            raise FormatError(f"{self.path}: holds something else than results of frames; give another name to -o")
        self.require_settings({name: str(value) for name, value in file.attrs.items()})
        self.done = int(file["complete"][()])
        frames = file["frame"][()]
        if len(frames) != len(self.frames) or not 0 <= self.done <= len(frames):
            raise FormatError(f"{self.path}: is of {len(frames):,} frames, not {len(self.frames):,}; start anew")
        self.require_frame(0, int(frames[0]))
        if not self.done:
            return None
        names = [name for name in file if name not in _NOT_TERMS]
        rows: NDArray[np.bytes_] = file["error"][: self.done]
        errors = {int(k): rows[k].decode("utf-8", "replace") for k in np.flatnonzero(rows != b"")}
        return Evaluated({name: file[name][: self.done] for name in names}, errors)


def _placed(file: h5py.File, name: str, n: int, kind: np.dtype[np.generic]) -> h5py.Dataset:
    """A dataset whose bytes have their place in the file from now on; they are zeros, which need no room on disk."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    place = h5py.h5d.create(
        file.id, name.encode(), h5py.h5t.py_create(kind, logical=True), h5py.h5s.create_simple((n,)), dcpl=plan
    )
    return h5py.Dataset(place)


def _opened(path: Path) -> h5py.File:
    """The file to write to, once the disk has room for all but the errors, as libhdf5 crashes where it has none.

    Raises OSError where it has not.
    """
    with h5py.File(path, "r") as file:
        error = file["error"].id
        first, end = error.get_offset(), error.get_offset() + error.get_storage_size()
    _reserve(path, 0, first)
    _reserve(path, end, path.stat().st_size)
    return h5py.File(path, "r+", libver=("v108", "latest"))


def _reserve(path: Path, first: int, end: int) -> None:
    """Have room on the disk for the bytes of a file from one place to another. Raises OSError where there is none."""
    if end > first and hasattr(os, "posix_fallocate"):  # which macOS and Windows lack
        with open(path, "r+b") as stream:
            os.posix_fallocate(stream.fileno(), first, end - first)
