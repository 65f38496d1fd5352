"""Several files that are read one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .framefile import FrameFile
from .memory import MemoryFile


class LastOpenFile:
    """Last requested of several files, open."""

    def __init__(self, paths: Sequence[Path | MemoryFile], open_file: Callable[[Path | MemoryFile], FrameFile]) -> None:
        self._paths, self._open = paths, open_file
        self._opened: tuple[int, FrameFile] | None = None

    def opened(self, index: int) -> FrameFile:
        """Open the file of this index, and close the one before."""
        if self._opened is None or self._opened[0] != index:
            self.close()
            self._opened = index, self._open(self._paths[index])
        return self._opened[1]

    def close(self) -> None:
        """Close the file that is open."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def __enter__(self) -> LastOpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
