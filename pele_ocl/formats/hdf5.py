"""HDF5 files, and NumPy's own: read where they may be damaged or claim more than they hold, and written.

Files are made in memory and then written as other files are. On a full disk libhdf5 crashes the program. Here an error
of the file system comes as a sentence.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..common.errors import FormatError, PeleError, printable
from ..common.inputfile import InputFile, require_unpacked
from ..common.variant import Progress

if TYPE_CHECKING:
    import h5py
    from _typeshed import ReadableBuffer, WriteableBuffer

# deflate makes 1 byte of 1032 at most; what claims to be more is not there.
MOST_EXPANSION = 1032
_MOST_ATTRIBUTE_BYTES = 2**24
_HEAP, _OBJECT_HEAD = b"GCOL\x01", 16  # bytes, with lengths of 8 bytes
_SHOWN = 200  # characters of another library's message


@contextmanager
def opened_hdf5(file: InputFile) -> Iterator[h5py.File]:
    """Open the HDF5 file that these bytes are; raise FormatError for whatever libhdf5 does not read in it."""
    import h5py

    try:
        _check_heaps(file.data)
        with h5py.File(io.BytesIO(file.data), "r") as opened:
            for name in opened:
                link = opened.get(name, getlink=True)
                if isinstance(link, h5py.ExternalLink):
                    raise FormatError(
                        f"{file}: {name} is a link to the file {printable(link.filename)}, which is not followed; give "
                        "a file that holds it itself"
                    )
            yield opened
    except PeleError:
        raise
    except Exception as error:  # damage shows in errors of many types: h5py and NumPy meet what no file should hold
        raise FormatError(f"{file}: cannot be read as HDF5 ({first_line(error)})") from None


def _check_heaps(data: bytes) -> None:
    """Raise ValueError for damaged heaps of texts, in whose objects libhdf5 (1.14, 2.0) would run in circles.

    A global heap collection is described in section III.E of the HDF5 file format. It is a signature, version 1, a
    size, then objects one after another. The one with index 0 is the free space, whose size counts its own head.
    """
    start = -1
    while (start := data.find(_HEAP, start + 1)) >= 0:
        size = int.from_bytes(data[start + 8 : start + 16], "little")
        at, end = start + 16, start + size
        if end > len(data):
            continue  # libhdf5 sees that itself
        while at + _OBJECT_HEAD <= end:
            length = int.from_bytes(data[at + 8 : at + 16], "little")
            is_free = data[at : at + 2] == b"\0\0"
            step = length if is_free else _OBJECT_HEAD + -(-length // 8) * 8
            if not _OBJECT_HEAD <= step <= end - at:
                raise ValueError("a heap of texts is damaged")
            at += step


def values_of(dataset: h5py.Dataset, source: object) -> NDArray[Any]:
    """Read the numbers of a dataset; raise FormatError for one that claims more than its file can hold."""
    if dataset.external:
        raise FormatError(
            f"{source}: the dataset {dataset.name} keeps its numbers in another file, "
            f"{printable(dataset.external[0][0])}; give a file that holds them itself"
        )
    announced = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = int(dataset.id.get_storage_size())
    if announced > MOST_EXPANSION * stored:
        raise FormatError(
            f"{source}: the dataset {dataset.name} announces {announced:,} bytes and holds {stored:,}; "
            "fetch or copy the file again"
        )
    require_unpacked(announced, stored, f"{source}: {dataset.name}", "HDF5")
    return np.asarray(dataset[()])


def attribute_of(item: h5py.Group | h5py.Dataset, name: str, source: object) -> NDArray[Any] | str | None:
    """A number or a text of an attribute, None where there is none; raises FormatError for one of absurd size."""
    if name not in item.attrs:
        return None
    size = item.attrs.get_id(name).get_storage_size()
    if size > _MOST_ATTRIBUTE_BYTES:
        raise FormatError(f"{source}: the attribute {name} announces {size:,} bytes; fetch or copy the file again")
    value = item.attrs[name]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else np.asarray(value)


def npy_array(stream: IO[bytes], size: int, source: object) -> NDArray[Any]:
    """Read the array of a .npy stream of `size` bytes; raise FormatError for whatever NumPy does not read in it."""
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read_header(stream)
        n = math.prod(shape)
        if dtype.hasobject or min(shape, default=0) < 0 or n * dtype.itemsize > size:
            raise ValueError(f"announces {n:,} values of type {dtype}, which it does not hold")
        array = np.frombuffer(stream.read(n * dtype.itemsize), dtype, n)
        if stream.read(1):
            raise ValueError(f"holds more than the {n:,} values that it announces")
        return array.reshape(shape, order="F" if fortran_order else "C")
    except Exception as error:  # the header is a Python literal, which can be wrong in many ways
        raise FormatError(f"{source}: cannot be read as .npy ({first_line(error)})") from None


def first_line(error: Exception) -> str:
    """Return the first line of an error, or its type if it says nothing."""
    text = " ".join(printable(str(error).partition("\n")[0]).split())
    return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...") or type(error).__name__


_PAGE = 1 << 16  # bytes


class SparseFile(io.RawIOBase):
    """Sparse file in memory: pages that nothing was written to are zeros and take no room."""

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
        """Extend the file to this many bytes, or to those already written if they are more."""
        self._size = max(self._size, self._place if size is None else size)
        return self._size

    def pages(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the place and bytes of each page that was written to, in order."""
        for number, page in sorted(self._pages.items()):
            yield number * _PAGE, memoryview(page)[: self._size - number * _PAGE]

    def _parts(self, count: int) -> Iterator[tuple[int, slice]]:
        """Yield the pages of the next bytes, and which bytes of each; the place moves past them."""
        end = self._place + count
        while self._place < end:
            number, start = divmod(self._place, _PAGE)
            stop = min(_PAGE, start + end - self._place)
            self._place += stop - start
            yield number, slice(start, stop)


@contextmanager
def writing_hdf5(path: Path, progress: Progress | None = None, *, track_order: bool = False) -> Iterator[Any]:
    """An empty h5py.File, which is written to `path` when the block ends.

    progress : called with the fraction written; track_order : as in h5py
    """
    import h5py  # takes a tenth of a second to load

    content = SparseFile()
    # Before version 1.8 of the file format an attribute was limited to 64 KiB.
    with h5py.File(content, "w", libver=("v108", "latest"), track_order=track_order) as file:
        yield file
    size = content.seek(0, io.SEEK_END)
    with open(path, "wb") as target:
        target.truncate(size)
        for start, page in content.pages():
            target.seek(start)
            target.write(page)
            if progress is not None:
                progress((start + len(page)) / size)


def placed_dataset(
    file: h5py.File, name: str, shape: tuple[int, ...], kind: np.dtype[np.generic]
) -> h5py.Dataset:  # fmt: skip
    """Make a dataset whose space in the file is allocated immediately.

    It is filled with zeros, which take no disk space.
    """
    import h5py

    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plan.set_obj_track_times(False)  # the same bytes whenever it is written
    place = h5py.h5d.create(
        file.id, name.encode(), h5py.h5t.py_create(kind, logical=True), h5py.h5s.create_simple(shape), dcpl=plan
    )
    return h5py.Dataset(place)


def write_attributes(item: Any, attributes: Mapping[str, object]) -> None:
    """Attributes of an HDF5 file or dataset; nested names joined by points, values that are None left out."""
    for name, value in flat(attributes).items():
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            item.attrs.create(name, text_array(array), dtype=text_type())
        else:
            item.attrs.create(name, array)


def text_type() -> Any:
    """Return the HDF5 type of texts: UTF-8 of any length."""
    import h5py

    return h5py.string_dtype("utf-8")


def text_array(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Texts as h5py takes them; bytes of file names that are not UTF-8 are escaped."""
    return np.vectorize(encodable, otypes=[object])(values) if values.size else values.astype(object)


def encodable(text: object) -> str:
    """Escape all of a text that UTF-8 cannot hold: `\\udcff`."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def flat(attributes: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested mappings as one, their names joined by points; values that are absent left out."""
    result: dict[str, object] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}.")
        elif value is not None:
            result[prefix + name] = value
    return result
