"""A file in memory that holds what is written to it, and nothing of the zeros between."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_PAGE = 1 << 16  # bytes


class SparseFile(io.RawIOBase):
    """A file in memory, of pages, of which those that nothing was written to are zeros and take no room."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        self._place = self._size = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place, and return it."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all bytes."""
        left = memoryview(data).cast("B")
        for number, part in self._parts(len(left)):
            size = part.stop - part.start
            if size == _PAGE:
                self._pages[number] = bytearray(left[:size])
            else:
                self._pages.setdefault(number, bytearray(_PAGE))[part] = left[:size]
            left = left[size:]
        self._size = max(self._size, self._place)
        return memoryview(data).nbytes

    def readinto(self, target: WriteableBuffer, /) -> int:
        """Read as many bytes as there are, up to the size of the target."""
        left = memoryview(target).cast("B")
        count = max(0, min(len(left), self._size - self._place))
        for number, part in self._parts(count):
            size = part.stop - part.start
            left[:size] = self._pages.get(number, bytes(_PAGE))[part]
            left = left[size:]
        return count

    def truncate(self, size: int | None = None, /) -> int:
        """Let the file have so many bytes, at least those that were written."""
        self._size = max(self._size, self._place if size is None else size)
        return self._size

    def pages(self) -> Iterator[tuple[int, memoryview]]:
        """Where each page that was written to stands, in order, and its bytes."""
        for number, page in sorted(self._pages.items()):
            yield number * _PAGE, memoryview(page)[: self._size - number * _PAGE]

    def _parts(self, count: int) -> Iterator[tuple[int, slice]]:
        """The pages of the next bytes, and which bytes of each; the place moves behind them."""
        end = self._place + count
        while self._place < end:
            number, start = divmod(self._place, _PAGE)
            stop = min(_PAGE, start + end - self._place)
            self._place += stop - start
            yield number, slice(start, stop)
