"""The interface of formats of conformations, and an open file of any of them."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType

from ...atoms import Floats
from ...errors import FormatError
from ..writing import appending, replacing


class Layout(ABC):
    """The bytes of a file: a head, conformations, and an end.

    has_gaps : whether a conformation that failed is written, as NaN; else it is left out
    """

    has_gaps: bool = False

    @abstractmethod
    def head(self) -> bytes:
        """All that stands before the conformations."""

    @abstractmethod
    def conformation(self, number: int, positions: Floats | None) -> bytes:
        """A conformation (n, 3) A, or that of one that failed, where there are gaps; number : from 1.

        Raises FormatError for positions that the format cannot hold.
        """

    def end(self) -> bytes:
        """All that stands behind the conformations."""
        return b""

    def begin(self, stream: io.FileIO) -> None:  # noqa: B027, as most formats have nothing to do
        """Make a file that has its head ready for conformations."""

    def cut(self, stream: io.FileIO, size: int) -> None:
        """Take off all that stands behind so many bytes."""
        stream.truncate(size)

    def grown(self, stream: io.FileIO, size: int) -> None:  # noqa: B027
        """Have the file say how many conformations it has, now that they end after so many bytes."""


class ConformationFile:
    """A file that conformations are appended to; size : bytes of its head and conformations."""

    def __init__(self, path: Path, layout: Layout, size: int | None) -> None:
        """size : as it was when an earlier run ended, to go on; None for a new file"""
        self.path, self._layout = path, layout
        head = layout.head()
        if size is None:
            with replacing(path) as temporary:
                temporary.write_bytes(head)
        else:
            self._require(head, size)
        self.size = len(head) if size is None else size
        self._stream = open(path, "r+b", buffering=0)
        with appending(path):
            if size is None:
                layout.begin(self._stream)
            else:
                layout.cut(self._stream, size)

    def __enter__(self) -> ConformationFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def append(self, number: int, positions: Floats | None) -> None:
        """Write conformation number (from 1); None for one that failed, which formats without gaps leave out.

        Raises FormatError where it cannot be written, as on a full disk; those before stay.
        """
        if positions is None and not self._layout.has_gaps:
            return
        data = self._layout.conformation(number, positions)
        self._write(data)
        self.size += len(data)
        self._layout.grown(self._stream, self.size)

    def finish(self) -> None:
        """Write the end, behind the last conformation."""
        self._write(self._layout.end())

    def _write(self, data: bytes) -> None:
        with appending(self.path):
            self._stream.seek(self.size)
            left = memoryview(data)
            while left:
                left = left[self._stream.write(left) :]

    def _require(self, head: bytes, size: int) -> None:
        """Raise FormatError unless the file that is there begins with this head and has so many bytes."""
        try:
            with open(self.path, "rb") as stream:
                is_same = stream.read(len(head)) == head or self._layout.has_gaps
                n_bytes = stream.seek(0, 2)
        except FileNotFoundError:
            is_same, n_bytes = False, 0
        if not is_same or n_bytes < size:
            raise FormatError(f"{self.path}: is not what the interrupted run left; start anew, without --resume")
