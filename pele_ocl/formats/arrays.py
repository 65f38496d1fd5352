"""Arrays in binary files of others, HDF5 and NumPy's own, that may be damaged or claim more than they hold."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, PeleError, printable
from ..inputfile import InputFile

if TYPE_CHECKING:
    import h5py

# deflate makes 1 byte of 1032 at most; what claims to be more is not there.
MOST_EXPANSION = 1032
_MOST_ATTRIBUTE_BYTES = 2**24
_HEAP, _OBJECT_HEAD = b"GCOL\x01", 16  # bytes, with lengths of 8 bytes
_SHOWN = 200  # characters of another library's message


@contextmanager
def opened_hdf5(file: InputFile) -> Iterator[h5py.File]:
    """The HDF5 file that these bytes are; raises FormatError for whatever libhdf5 does not read in it."""
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

    A global heap collection, section III.E of the HDF5 file format: signature, version 1, size, then objects one behind
    the other; the one with index 0 is the free space, whose size counts its own head.
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
    """The numbers of a dataset; raises FormatError for one that claims more of them than its file can hold."""
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
    """The array of a .npy stream of `size` bytes; raises FormatError for whatever NumPy does not read in it."""
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
    """The first line of what an error says, or its type where it says nothing."""
    text = " ".join(printable(str(error).partition("\n")[0]).split())
    return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...") or type(error).__name__
