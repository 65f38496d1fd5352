"""Interface of trajectory files that are open, and files whose frames are records of one length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from ...atoms import Labels
from ...common.errors import FormatError

Positions = NDArray[np.floating]  # (m, n, 3) A, float32 or float64 as the file holds them
AtomChoice = slice | NDArray[np.intp]  # the atoms of a file that are wanted, as NumPy indexes them


class FrameFile(ABC):
    """An open trajectory file, to be closed by leaving its `with` block.

    path : as the user named it
    n_atoms : of every frame; n_frames : frames that the file holds whole
    is_partial : whether it ends within one frame more
    takes_more : whether to read takes more memory than the positions that are wanted
    cells : (m, 3, 3) A, the unit cells of the frames that were read last, NaN where one has none; None without any
    """

    takes_more = True
    cells: NDArray[np.float64] | None = None
    angles: tuple[float, float, float] = (90.0, 90.0, 90.0)  # degrees, of cells in files that have lengths alone

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
        """Names of the atoms of every frame, in the order of the file; None if it has none."""
        return None

    @abstractmethod
    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        """Positions (len(frames), k, 3) A of k chosen atoms; frames : rising, within n_frames.

        Raises FormatError for frames that are damaged.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class RecordFile(FrameFile):
    """A file in which each frame is a record of `length` bytes, the first at `offset`."""

    def __init__(self, path: Path, n_atoms: int, offset: int, length: int, n_frames: int | None = None) -> None:
        """n_frames : as the file announces them; None where the size of the file alone tells."""
        self.offset, self.length = offset, length
        if n_atoms < 1 or offset < 0 or length < 1:
            raise FormatError(f"{path}: its head is damaged; copy the file again")
        whole, rest = divmod(max(0, path.stat().st_size - offset), length)
        is_partial = rest > 0 if n_frames is None else n_frames > whole
        super().__init__(path, n_atoms, whole if n_frames is None else min(n_frames, whole), is_partial)
        self._stream = open(path, "rb", buffering=0)

    def raw(self, frames: range) -> NDArray[np.uint8]:
        """Read the records (len(frames), length) of frames."""
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
                raise FormatError(f"{self.path}: was cut while it was read; copy the file again")
            left = left[count:]
