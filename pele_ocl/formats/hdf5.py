"""Safe reading of HDF5 and .npy files that may be damaged, and writing of HDF5 files.

Files are created in memory and then written, because libhdf5 crashes the program if the disk is full; here errors of
the file system are reported as usual.
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

# Maximum compression ratio of deflate; a dataset that announces more is damaged.
MOST_EXPANSION = 1032
_MOST_ATTRIBUTE_BYTES = 2**24
_HEAP, _OBJECT_HEAD = b"GCOL\x01", 16  # 16 bytes if lengths have 8 bytes
_SHOWN = 200  # maximum length of a message of another library


@contextmanager
def opened_hdf5(file: InputFile) -> Iterator[h5py.File]:
    """Context manager that opens an HDF5 file. Raises FormatError for anything that libhdf5 cannot read."""
    import h5py

    try:
        _check_heaps(file.data)
        with h5py.File(io.BytesIO(file.data), "r") as opened:
            for name in opened:
                link = opened.get(name, getlink=True)
                if isinstance(link, h5py.ExternalLink):
                    raise FormatError(
                        f"{file}: {name} is a link to the file {printable(link.filename)}, which is not supported; "
                        "give a file that contains the data itself"
                    )
            yield opened
    except PeleError:
        raise
    except Exception as error:  # damaged files cause many types of errors in h5py and NumPy
        raise FormatError(f"{file}: cannot be read as HDF5 ({first_line(error)})") from None


def _check_heaps(data: bytes) -> None:
    """Raise ValueError for damaged global heaps, which cause infinite loops in libhdf5 (1.14, 2.0).

    Section III.E of the HDF5 file format specification describes a global heap collection: signature, version 1, size,
    and a sequence of objects. The object with index 0 is the free space, whose size includes its header.
    """
    start = -1
    while (start := data.find(_HEAP, start + 1)) >= 0:
        size = int.from_bytes(data[start + 8 : start + 16], "little")
        at, end = start + 16, start + size
        if end > len(data):
            continue  # detected by libhdf5
        while at + _OBJECT_HEAD <= end:
            length = int.from_bytes(data[at + 8 : at + 16], "little")
            is_free = data[at : at + 2] == b"\0\0"
            step = length if is_free else _OBJECT_HEAD + -(-length // 8) * 8
            if not _OBJECT_HEAD <= step <= end - at:
                raise ValueError("a heap of strings is damaged")
            at += step


def values_of(dataset: h5py.Dataset, source: object) -> NDArray[Any]:
    """Read the values of a dataset. Raises FormatError if it announces more data than the file can contain."""
    if dataset.external:
        raise FormatError(
            f"{source}: the dataset {dataset.name} stores its values in another file, "
            f"{printable(dataset.external[0][0])}; give a file that contains them"
        )
    announced = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = int(dataset.id.get_storage_size())
    if announced > MOST_EXPANSION * stored:
        raise FormatError(
            f"{source}: the dataset {dataset.name} announces {announced:,} bytes and contains {stored:,}; "
            "fetch or copy the file again"
        )
    require_unpacked(announced, stored, f"{source}: {dataset.name}", "HDF5")
    return np.asarray(dataset[()])


def attribute_of(item: h5py.Group | h5py.Dataset, name: str, source: object) -> NDArray[Any] | str | None:
    """Read an attribute, None if there is none. Raises FormatError for attributes of excessive size."""
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
    """Read the array in a .npy stream of `size` bytes. Raises FormatError for anything that NumPy cannot read."""
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read_header(stream)
        n = math.prod(shape)
        if dtype.hasobject or min(shape, default=0) < 0 or n * dtype.itemsize > size:
            raise ValueError(f"announces {n:,} values of type {dtype}, which it does not contain")
        array = np.frombuffer(stream.read(n * dtype.itemsize), dtype, n)
        if stream.read(1):
            raise ValueError(f"contains more than the {n:,} values that it announces")
        return array.reshape(shape, order="F" if fortran_order else "C")
    except Exception as error:  # the header is a Python literal, which can cause many types of errors
        raise FormatError(f"{source}: cannot be read as .npy ({first_line(error)})") from None


def first_line(error: Exception) -> str:
    """Return the first line of an error message, or the type of the error if it has no message."""
    text = " ".join(printable(str(error).partition("\n")[0]).split())
    return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...") or type(error).__name__


_PAGE = 1 << 16  # bytes


class SparseFile(io.RawIOBase):
    """Sparse file in memory. Pages that were never written are zeros and use no memory."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        self._place = self._size = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position and return it."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes at the current position."""
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
        """Read up to the size of the target or the end of the file."""
        left = memoryview(target).cast("B")
        count = max(0, min(len(left), self._size - self._place))
        for number, part in self._parts(count):
            size = part.stop - part.start
            left[:size] = self._pages.get(number, bytes(_PAGE))[part]
            left = left[size:]
        return count

    def truncate(self, size: int | None = None, /) -> int:
        """Extend the file to this size. A smaller size has no effect."""
        self._size = max(self._size, self._place if size is None else size)
        return self._size

    def pages(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the offset and the bytes of each written page, in order."""
        for number, page in sorted(self._pages.items()):
            yield number * _PAGE, memoryview(page)[: self._size - number * _PAGE]

    def _parts(self, count: int) -> Iterator[tuple[int, slice]]:
        """Advance by `count` bytes, and yield the number and slice of each page they are in."""
        end = self._place + count
        while self._place < end:
            number, start = divmod(self._place, _PAGE)
            stop = min(_PAGE, start + end - self._place)
            self._place += stop - start
            yield number, slice(start, stop)


@contextmanager
def writing_hdf5(path: Path, progress: Progress | None = None, *, track_order: bool = False) -> Iterator[Any]:
    """Context manager with an empty h5py.File, which is written to `path` at the end of the block.

    progress : called with the written fraction, 0 to 1; track_order : as in h5py
    """
    import h5py  # takes a tenth of a second to import

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
    """Create a contiguous dataset whose space is allocated immediately.

    It is filled with zeros, which use no disk space.
    """
    import h5py

    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plan.set_obj_track_times(False)  # for reproducible bytes
    place = h5py.h5d.create(
        file.id, name.encode(), h5py.h5t.py_create(kind, logical=True), h5py.h5s.create_simple(shape), dcpl=plan
    )
    return h5py.Dataset(place)


def write_attributes(item: Any, attributes: Mapping[str, object]) -> None:
    """Write attributes of an HDF5 file or dataset. Nested names are joined by dots; None values are omitted."""
    for name, value in flat(attributes).items():
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            item.attrs.create(name, text_array(array), dtype=text_type())
        else:
            item.attrs.create(name, array)


def text_type() -> Any:
    """Return the HDF5 type for texts: variable-length UTF-8."""
    import h5py

    return h5py.string_dtype("utf-8")


def text_array(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert texts for h5py. Bytes of file names that are not UTF-8 are escaped."""
    return np.vectorize(encodable, otypes=[object])(values) if values.size else values.astype(object)


def encodable(text: object) -> str:
    """Escape the characters of a text that UTF-8 cannot represent, such as `\\udcff`."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def flat(attributes: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Flatten nested mappings, joining names by dots and omitting None values."""
    result: dict[str, object] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}.")
        elif value is not None:
            result[prefix + name] = value
    return result
