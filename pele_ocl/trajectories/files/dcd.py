"""Reader of DCD trajectories from CHARMM, NAMD, X-PLOR and OpenMM.

A frame consists of Fortran records, each between markers of its length: the unit cell, if any, and x, y and z of all
atoms as float32. MDTraj's reader, VMD's plugin, is not used because it prints to stdout, which is reserved for results.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...common.errors import FormatError
from ...contract import cells_of
from .framefile import AtomChoice, Positions, RecordFile

_HEAD = 84  # size of the first record, bytes
_CELL = 48
_MOST = 1 << 24  # maximum size of titles, bytes


class DcdFile(RecordFile):
    """A DCD file of either byte order."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as stream:
            head = stream.read(_HEAD + 8)
            order = next((o for o in "<>" if head[:4] == np.array(_HEAD, f"{o}i4").tobytes()), None)
            if order is None or head[4:8] != b"CORD":
                raise FormatError(f"{path}: not a DCD file with 32-bit record markers; is its suffix correct?")
            self._mark = np.dtype(f"{order}i4")
            try:
                counts = np.frombuffer(head, self._mark, 20, 8)
                self._record(stream)  # titles
                n = int(np.frombuffer(self._record(stream), self._mark, 1)[0])
            except ValueError:
                raise FormatError(f"{path}: its header is truncated or damaged; copy the file again") from None
            offset = stream.tell()
        if counts[8]:
            raise FormatError(f"{path}: contains only the moving atoms; rewrite it with all atoms")
        is_charmm = counts[19] != 0  # in X-PLOR files, the flags have other meanings
        cell = _CELL + 8 if is_charmm and counts[10] else 0
        self._has_cell = cell > 0
        axis = 4 * n + 8
        super().__init__(path, n, offset, cell + (4 if is_charmm and counts[11] == 1 else 3) * axis)
        self.is_partial |= int(counts[0]) > self.n_frames
        self._starts = [cell + 4 + k * axis for k in range(3)]
        self._value, self._wide = np.dtype(f"{order}f4"), np.dtype(f"{order}f8")

    def _record(self, stream: BinaryIO) -> bytes:
        """Read the next record of the header. Raises ValueError if it is damaged."""
        (length,) = np.frombuffer(stream.read(4), self._mark, 1).tolist()
        if not 0 <= length < _MOST:
            raise ValueError("invalid length of a header record")
        data = stream.read(length)
        if stream.read(4) != np.array(length, self._mark).tobytes():
            raise ValueError("record markers differ")
        return data

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        raw, size = self.raw(frames), 4 * self.n_atoms
        columns = [raw[:, start : start + size].view(self._value)[:, atoms] for start in self._starts]
        self._check(raw, size, frames)
        if self._has_cell:
            self.cells = _cells(np.ascontiguousarray(raw[:, 4 : 4 + _CELL]).view(self._wide))
        positions: Positions = np.empty((*columns[0].shape, 3), np.float32)
        for axis, column in enumerate(columns):
            positions[:, :, axis] = column
        return positions

    def _check(self, raw: NDArray[np.uint8], size: int, frames: range) -> None:
        """Raise FormatError for frames with invalid length markers."""
        marks = [raw[:, place : place + 4] for s in self._starts for place in (s - 4, s + size)]
        expected = np.frombuffer(np.array(size, self._mark).tobytes(), np.uint8)
        wrong = np.flatnonzero((np.concatenate(marks, axis=1) != np.tile(expected, len(marks))).any(axis=1))
        if len(wrong):
            raise FormatError(f"{self.path}: frame {frames[int(wrong[0])]} is damaged; copy the file again")


def _cells(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Convert A, gamma, B, beta, alpha, C to cells (m, 3, 3) A. Angles are in degrees, or cosines as in CHARMM."""
    found = np.asarray(values, np.float64)
    angles = found[:, [4, 3, 1]]
    with np.errstate(invalid="ignore"):
        are_cosines = (np.abs(angles) <= 1).all(axis=1, keepdims=True)
        degrees = np.where(are_cosines, np.degrees(np.arccos(np.clip(angles, -1, 1))), angles)
    return cells_of(found[:, [0, 2, 5]], degrees)
