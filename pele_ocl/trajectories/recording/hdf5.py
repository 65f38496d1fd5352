"""HDF5: a dataset for each column, whose place in the file is settled before the first row is written.

A program that is killed then leaves a file that every reader opens: from the first row on nothing but numbers within
datasets changes, no table of contents. `complete` says how many rows are there; the others are NaN.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...formats.hdf5_writing import encodable, write_attributes
from ..streaming import Evaluated
from .recorder import UNIT, Recorder, Settings, error_texts

_ERROR_BYTES = 200  # longer reasons are cut
_NOT_TERMS = ("frame", "error", "complete")
_BLOCK = 1 << 16  # rows


class Hdf5Recorder(Recorder):
    """An HDF5 file with the datasets `frame`, the terms, `error` and `complete`; settings are attributes."""

    def __init__(self, path: Path, settings: Settings, frames: range) -> None:
        super().__init__(path, settings, frames)
        self._file: h5py.File | None = None

    def resume(self) -> Evaluated | None:
        if not self.path.exists():
            return None
        try:
            file = h5py.File(self.path, "r+")
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be read as HDF5 ({error}); give another name to -o") from None
        try:
            found = self._found(file)
        except BaseException:
            file.close()
            raise
        if found is None:
            file.close()
        else:
            self._file = file
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
            texts = [encodable(text).encode()[:_ERROR_BYTES] for text in error_texts(results)]
            self._file["error"][rows] = np.array(texts, h5py.string_dtype("utf-8", _ERROR_BYTES))
        self._file.flush()  # the rows, before the number that says they are there
        self.done += n
        self._file["complete"][()] = self.done
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _created(self, results: Evaluated) -> h5py.File:
        """A file for all rows, none of which is there yet, with a name of its own until it is whole."""
        n = len(self.frames)
        temporary = self.path.with_name(f".{self.path.stem[:64]}-new{self.path.suffix}")
        with h5py.File(temporary, "w", libver=("v108", "v108"), track_order=True) as file:
            write_attributes(file, self.settings)
            for name, values in results.columns.items():
                kind = values.dtype
                dataset = _placed(file, name, n, kind, np.nan if kind.kind == "f" else 0)
                if kind.kind == "f":
                    dataset.attrs["unit"] = UNIT
            dataset = _placed(file, "frame", n, np.dtype(np.int64), -1)
            for first in range(0, n, _BLOCK):
                dataset[first : first + _BLOCK] = np.array(self.frames[first : first + _BLOCK])
            _placed(file, "error", n, h5py.string_dtype("utf-8", _ERROR_BYTES), None)
            file.create_dataset("complete", data=np.int64(0))
        temporary.replace(self.path)
        return h5py.File(self.path, "r+", libver=("v108", "v108"))

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


def _placed(file: h5py.File, name: str, n: int, kind: np.dtype[np.generic], fill: float | None) -> h5py.Dataset:
    """A dataset whose bytes have their place in the file from now on; fill None : zeros, which need no room on disk."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER if fill is None else h5py.h5d.FILL_TIME_ALLOC)
    if fill is not None:
        plan.set_fill_value(np.array(fill, kind))
    place = h5py.h5d.create(
        file.id, name.encode(), h5py.h5t.py_create(kind, logical=True), h5py.h5s.create_simple((n,)), dcpl=plan
    )
    return h5py.Dataset(place)
