"""HDF5 recorder: one dataset per column, all of which are allocated before the first row is written.

Afterwards only values inside of datasets change, not the metadata, so the file is readable even if the program is
killed. `complete` is the number of rows written; the others are NaN. Rows are written directly to the file, which is
ten times faster than with libhdf5.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...common.errors import FormatError
from ...common.writing import appending, replacing
from ...formats.hdf5 import placed_dataset, write_attributes, writing_hdf5
from ..streaming import FrameResults
from .recorder import Recorder, Settings, error_texts, numbers_of, unit_of

if TYPE_CHECKING:
    import h5py  # takes a tenth of a second to import, and is not needed for other formats

_ERROR_BYTES = 200  # longer messages are truncated
_NOT_TERMS = ("frame", "error", "complete")
_BLOCK = 1 << 16  # rows


@dataclass(frozen=True)
class DatasetPlace:
    """Offset and type of the rows of a dataset in the file."""

    offset: int
    dtype: np.dtype[np.generic]

    def of(self, row: int) -> int:
        """Return the offset of a row."""
        return self.offset + row * self.dtype.itemsize


class Hdf5Recorder(Recorder):
    """An HDF5 file with the datasets `frame`, one per term, `error` and `complete`; settings are attributes."""

    def __init__(self, path: Path, settings: Settings, frames: range) -> None:
        super().__init__(path, settings, frames)
        self._stream: io.FileIO | None = None
        self._places: dict[str, DatasetPlace] = {}

    def settings_there(self) -> Settings:
        import h5py

        try:
            with h5py.File(self.path, "r") as file:
                return {name: str(value) for name, value in file.attrs.items()}
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be read as HDF5 ({error})") from None

    def resume(self) -> FrameResults | None:
        import h5py

        if not self.path.exists():
            return None
        try:
            with h5py.File(self.path, "r") as there:
                found = self._found(there)
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be read as HDF5 ({error}); choose another name for -o") from None
        if found is not None:
            with appending(self.path):
                self._open(self.path)
        return found

    def append(self, results: FrameResults) -> None:
        if self._stream is None:
            self._create(results)
        self.require_names([name for name in self._places if name not in _NOT_TERMS], results)
        n = len(next(iter(results.columns.values())))
        with appending(self.path):
            if results.errors:
                place, texts = self._places["error"], [text.encode()[:_ERROR_BYTES] for text in error_texts(results)]
                _reserve(self.path, place.of(self.done), place.of(self.done + n))
                self._write("error", self.done, np.array(texts))
            for name, values in results.columns.items():
                self._write(name, self.done, values)
            self._write("complete", 0, np.array([self.done + n]))  # last, when the rows are written
        self.done += n

    def _write(self, name: str, row: int, values: NDArray[np.generic]) -> None:
        """Write values to rows of a dataset."""
        assert self._stream is not None
        place = self._places[name]
        self._stream.seek(place.of(row))
        left = np.ascontiguousarray(values, place.dtype).view(np.uint8).data
        while left:
            left = left[self._stream.write(left) :]

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _create(self, results: FrameResults) -> None:
        """Create a file with empty rows, which is renamed when it is complete."""
        with replacing(self.path) as temporary:
            size = self._outlined(temporary, results)
            with open(temporary, "r+b") as stream:
                stream.truncate(size)
            self._open(temporary)
            try:
                self._begin(results)
            finally:
                self.close()
        self._stream = open(self.path, "r+b", buffering=0)

    def _open(self, path: Path) -> None:
        """Open the file for writing after reserving disk space for all rows."""
        self._places = _reserve_all(path)
        self._stream = open(path, "r+b", buffering=0)

    def _outlined(self, path: Path, results: FrameResults) -> int:
        """Write the metadata. Returns the size of the file including its datasets, in bytes."""
        import h5py

        n = len(self.frames)
        with writing_hdf5(path, track_order=True) as file:
            write_attributes(file, self.settings)
            for name, values in results.columns.items():
                dataset = placed_dataset(file, name, (n,), values.dtype)
                if values.dtype.kind == "f":
                    dataset.attrs["unit"] = unit_of(name)
            placed_dataset(file, "frame", (n,), np.dtype(np.int64))
            file.create_dataset("complete", data=np.int64(0))
            placed_dataset(file, "error", (n,), h5py.string_dtype("utf-8", _ERROR_BYTES))
            file.flush()
            return int(file.id.get_filesize())

    def _begin(self, results: FrameResults) -> None:
        """Write the frame numbers, and NaN in all rows."""
        for first in range(0, len(self.frames), _BLOCK):
            frames = self.frames[first : first + _BLOCK]
            self._write("frame", first, numbers_of(frames))
            for name, values in results.columns.items():
                self._write(name, first, np.full(len(frames), np.nan if values.dtype.kind == "f" else 0, values.dtype))

    def _found(self, file: h5py.File) -> FrameResults | None:
        """Read the rows of an earlier run."""
        if "complete" not in file or "frame" not in file:
            raise FormatError(
                f"{self.path}: contains something other than results of frames; choose another name for -o"
            )
        self.require_settings({name: str(value) for name, value in file.attrs.items()})
        self.done = int(file["complete"][()])
        frames = file["frame"][()]
        if len(frames) != len(self.frames) or not 0 <= self.done <= len(frames):
            raise FormatError(f"{self.path}: contains {len(frames):,} frames, not {len(self.frames):,}; start again")
        self.require_frame(0, int(frames[0]))
        if not self.done:
            return None
        names = [name for name in file if name not in _NOT_TERMS]
        rows: NDArray[np.bytes_] = file["error"][: self.done]
        errors = {int(k): rows[k].decode("utf-8", "replace") for k in np.flatnonzero(rows != b"")}
        return FrameResults({name: file[name][: self.done] for name in names}, errors)


def _reserve_all(path: Path) -> dict[str, DatasetPlace]:
    """Reserve disk space for all datasets except errors, and return their locations.

    Raises OSError if the disk is full.
    """
    import h5py

    with h5py.File(path, "r") as file:
        places = {name: DatasetPlace(values.id.get_offset(), values.dtype) for name, values in file.items()}
        error = file["error"].id
        first, end = error.get_offset(), error.get_offset() + error.get_storage_size()
    _reserve(path, 0, first)
    _reserve(path, end, path.stat().st_size)
    return places


def _reserve(path: Path, first: int, end: int) -> None:
    """Reserve disk space for a range of bytes in a file. Raises OSError if the disk is full."""
    if end > first and hasattr(os, "posix_fallocate"):  # not on macOS and Windows
        with open(path, "r+b") as stream:
            os.posix_fallocate(stream.fileno(), first, end - first)
