"""Reader of GROMACS XTC and TRR trajectories, using MDTraj."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from ...common.errors import FormatError
from ...common.extras import extra
from ...contract import usable_cells
from .framefile import AtomChoice, FrameFile, Positions

_UNPACKED, _WIDE_XTC = 9, 2023  # number of atoms; magic number of files with more than 2^31 bytes per frame
_NANOMETER = np.float32(10.0)  # A


class _Handle(Protocol):
    """MDTraj's XTCTrajectoryFile or TRRTrajectoryFile."""

    @property
    def offsets(self) -> NDArray[np.int64]: ...
    def seek(self, offset: int) -> None: ...
    def read(self, n_frames: int, stride: int) -> tuple[NDArray[np.float32], ...]: ...
    def close(self) -> None: ...


class XdrFile(FrameFile):
    """A file opened with MDTraj; positions are float32."""

    def __init__(self, path: Path, opened: Callable[[str], _Handle], size: Callable[[BinaryIO], int]) -> None:
        """Open a file. size : returns the size in bytes of the frame at the position of a stream"""
        try:
            self._file = opened(str(path))
            places = self._file.offsets
            first = self._file.read(n_frames=1, stride=1)[0]
        except (OSError, RuntimeError, ValueError, EOFError) as error:
            raise FormatError(f"{path}: cannot be read ({error}); copy the file again") from None
        with open(path, "rb") as stream:
            stream.seek(int(places[-1]))
            end = int(places[-1]) + size(stream)
        whole = path.stat().st_size
        super().__init__(path, first.shape[1], len(places) - (end > whole), end != whole)

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        try:
            self._file.seek(frames.start)
            found, _, _, boxes, *_ = self._file.read(n_frames=len(frames), stride=frames.step)
        except (OSError, RuntimeError, ValueError, EOFError) as error:
            raise FormatError(f"{self.path}: cannot be read beyond frame {frames.start} ({error})") from None
        if len(found) < len(frames):
            raise FormatError(
                f"{self.path}: ends after frame {frames.start + len(found) * frames.step - 1}, in the middle of the "
                "next; copy the file again, or select complete frames with `frames`"
            )
        self.cells = None if boxes is None else usable_cells(np.asarray(boxes, np.float64) * float(_NANOMETER))
        positions: Positions = found[:, atoms] * _NANOMETER
        return positions

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


def open_xtc(path: Path) -> FrameFile:
    """Open an XTC file. Its positions are rounded, usually to 0.01 A."""
    return XdrFile(path, extra("mdtraj.formats", "an .xtc file").XTCTrajectoryFile, _xtc_size)


def open_trr(path: Path) -> FrameFile:
    """Open a TRR file."""
    return XdrFile(path, extra("mdtraj.formats", "a .trr file").TRRTrajectoryFile, _trr_size)


def _xtc_size(stream: BinaryIO) -> int:
    """Return the size of an XTC frame in bytes.

    A header of 52 bytes is followed by the uncompressed positions of up to 9 atoms, or by the length of the compressed
    positions and these.
    """
    magic, n = _integers(stream, 2)
    if n <= _UNPACKED:
        return 56 + 12 * n
    stream.seek(80, 1)
    wide = magic == _WIDE_XTC
    *_, packed = _integers(stream, 2 if wide else 1)
    return (96 if wide else 92) + -(-packed // 4) * 4


def _trr_size(stream: BinaryIO) -> int:
    """Return the size of a TRR frame in bytes: a header, whose size depends on the precision, and its data blocks."""
    _, _, length = _integers(stream, 3)
    stream.seek(-(-length // 4) * 4, 1)
    *blocks, n, _, _ = _integers(stream, 13)
    is_double = blocks[2] == 72 or 24 * n in blocks[7:]  # the box, or positions, velocities, forces
    return 12 + -(-length // 4) * 4 + 52 + (16 if is_double else 8) + sum(blocks)


def _integers(stream: BinaryIO, n: int) -> list[int]:
    data = stream.read(4 * n).ljust(4 * n, b"\0")  # if truncated, the frame ends beyond the file
    return [int.from_bytes(data[k : k + 4], "big") for k in range(0, 4 * n, 4)]
