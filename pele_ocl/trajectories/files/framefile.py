"""Interface of open trajectory files, and base class of files with fixed-length records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from ...atoms import Labels
from ...common.errors import FormatError

Positions = NDArray[np.floating]  # (m, n, 3) A, float32 or float64 as in the file
AtomChoice = slice | NDArray[np.intp]  # index of the atoms to read


class FrameFile(ABC):
    """An open trajectory file, which is a context manager that closes the file.

    path : path given by the user
    n_atoms : number of atoms per frame; n_frames : number of complete frames
    is_partial : True if the file ends with an incomplete frame
    takes_more : True if reading needs more memory than the requested positions
    cells : (m, 3, 3) A, unit cells of the frames read last, NaN for frames without one; None if there are none
    """

    takes_more = True
    cells: NDArray[np.float64] | None = None
    angles: tuple[float, float, float] = (90.0, 90.0, 90.0)  # degrees, for files with only cell lengths

    def __init__(self, path: Path, n_atoms: int, n_frames: int, is_partial: bool = False) -> None:
        self.path, self.n_atoms, self.n_frames, self.is_partial = path, n_atoms, n_frames, is_partial

    def __enter__(self) -> FrameFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def labels(self) -> Labels | None:
        """Labels of the atoms in the order of the file; None if it has none."""
        return None

    @abstractmethod
    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        """Read the positions (len(frames), k, 3) A of k chosen atoms. frames : ascending, below n_frames

        Raises FormatError for damaged frames.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class RecordFile(FrameFile):
    """A file in which each frame is a record of `length` bytes, starting at `offset`."""

    def __init__(self, path: Path, n_atoms: int, offset: int, length: int, n_frames: int | None = None) -> None:
        """Open the file. n_frames : number of frames in the header; None to use the size of the file"""
        self.offset, self.length = offset, length
        if n_atoms < 1 or offset < 0 or length < 1:
            raise FormatError(f"{path}: its header is damaged; copy the file again")
        whole, rest = divmod(max(0, path.stat().st_size - offset), length)
        is_partial = rest > 0 if n_frames is None else n_frames > whole
        super().__init__(path, n_atoms, whole if n_frames is None else min(n_frames, whole), is_partial)
        self._stream = open(path, "rb", buffering=0)

    def raw(self, frames: range) -> NDArray[np.uint8]:
        """Read the records of frames, (len(frames), length)."""
        rows = np.empty((len(frames), self.length), np.uint8)
        if frames.step == 1:
            self._fill(rows, frames.start)
        else:
            for k, row in zip(frames, rows, strict=True):
                self._fill(row, k)
        return rows

    def close(self) -> None:
        self._stream.close()

    def _fill(self, rows: NDArray[np.uint8], first: int) -> None:
        self._stream.seek(self.offset + first * self.length)
        left = rows.reshape(-1).data
        while left:
            count = self._stream.readinto(left)
            if not count:
                raise FormatError(f"{self.path}: was truncated while it was read; copy the file again")
            left = left[count:]
