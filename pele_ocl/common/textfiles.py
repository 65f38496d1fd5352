"""Reading of text files with any line ends, encoding and compression, and strict parsing of numbers."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TextIO

from .errors import FormatError
from .inputfile import InputFile, read_file, require_unpacked

GZIP_MAGIC, BZIP2_MAGIC = b"\x1f\x8b", b"BZh"
_LONGEST_LINE = 2**24  # characters; limits memory for malicious files with one huge line
_QUOTED = 60  # characters of a word in messages
_NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_PDB_RECORDS = ("HEADER", "TITLE ", "REMARK", "CRYST1", "MODEL ", "ATOM  ", "HETATM")


def lines(source: str | PathLike[str], kind: str) -> Iterator[str]:
    """Read the lines of a text file, plain or compressed, without byte-order mark and ending in ``\\n``.

    Windows and old Mac line ends are accepted. Bytes that are not valid UTF-8, as in Latin-1 remarks, become U+FFFD.

    source : a path, or an InputFile
    kind : expected content, for messages: "PDB", "PQR", "mmCIF", "template" or "parameter"

    Raises FormatError if the file is missing, unreadable, empty, binary, HTML, damaged, or of another format.
    """
    file = read_file(source)
    packed = _packing(file)
    with (
        _sentences_of(file, packed),
        io.TextIOWrapper(io.BytesIO(_unpacked(file, packed, kind in _MAPS)), "utf-8-sig", "replace") as text,
    ):
        yield from _checked(text, file.path, kind)


def plain_bytes(source: str | PathLike[str]) -> bytes:
    """Read the content of a file, plain or compressed, for formats with fixed columns or binary data.

    Raises FormatError if the file is missing or unreadable, and for compressed data that are damaged or too large.
    """
    file = read_file(source)
    packed = _packing(file)
    with _sentences_of(file, packed):
        return _unpacked(file, packed)


_MAPS = ("DX", "cube")  # text formats of maps
_PACKINGS = {".gz": "gzip", ".bz2": "bzip2"}  # by suffix


def _unpacked(file: InputFile, packed: str | None, is_map: bool = False) -> bytes:
    """Decompress a file in parts, and stop with an error if the size becomes unreasonable.

    This protects against decompression bombs.
    """
    if packed is None:
        return file.data
    raw = io.BytesIO(file.data)
    parts, n_bytes = list[bytes](), 0
    with gzip.open(raw) if packed == "gzip" else bz2.open(raw) as stream:
        while part := stream.read(_LONGEST_LINE):
            parts.append(part)
            n_bytes += len(part)
            require_unpacked(n_bytes, len(file.data), file, packed, is_map=is_map)
    return b"".join(parts)


def _packing(file: InputFile) -> str | None:
    """Return the compression of a file, "gzip" or "bzip2", from its first bytes; None if uncompressed."""
    found = None
    if file.data.startswith(GZIP_MAGIC):
        found = "gzip"
    elif file.data.startswith(BZIP2_MAGIC):
        found = "bzip2"
    meant = _PACKINGS.get(file.suffix)
    if meant is not None and found is None:
        raise FormatError(f"{file}: not {meant} data, although its name ends in {file.suffix}; remove the suffix")
    return found


@contextmanager
def _sentences_of(file: InputFile, kind: str | None) -> Iterator[None]:
    """Context manager that converts errors of gzip and bzip2 to FormatError."""
    try:
        yield
    except EOFError:
        raise FormatError(f"{file}: the {kind} data ends too early; fetch or copy the file again") from None
    except (gzip.BadGzipFile, zlib.error):
        raise FormatError(f"{file}: the gzip data is damaged; fetch or copy the file again") from None
    except OSError as error:
        if kind != "bzip2":
            raise
        raise FormatError(f"{file}: the bzip2 data is damaged; fetch or copy the file again") from error


def number(text: str) -> float | None:
    """Parse a number in a field of a file, including NaN and infinity; None if it is not a number.

    It is stricter than `float`, which accepts `1_0.0` and digits of other scripts.
    """
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def whole(text: str) -> int | None:
    """Parse an integer of up to 18 ASCII digits; None for other strings, such as superscript digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def quoted(value: object) -> str:
    """Return a word of a file in quotation marks, shortened and with control characters escaped, for messages."""
    try:
        text = str(value)
    except ValueError:  # an integer with thousands of digits
        text = "a number of too many digits"
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r} and {len(text) - _QUOTED:,} more characters"


def _checked(text: TextIO, path: Path, kind: str) -> Iterator[str]:
    empty = True
    for number, line in enumerate(iter(lambda: text.readline(_LONGEST_LINE), ""), 1):
        if len(line) == _LONGEST_LINE:
            raise FormatError(f"{path}:{number}: a line of more than {len(line):,} characters; the file is damaged")
        if "\0" in line:
            raise FormatError(f"{path}:{number}: contains NUL bytes: the file is binary or damaged")
        if empty and line.strip():
            empty = False
            _refuse_other_formats(line, path, kind)
        yield line
    if empty:
        raise FormatError(f"{path}: the file is empty")


def _refuse_other_formats(first: str, path: Path, kind: str) -> None:
    if first.lstrip().startswith("<"):
        raise FormatError(f"{path}: contains HTML, not a {kind} file; was the download an error page?")
    if kind in ("PDB", "PQR") and first.startswith("data_"):
        raise FormatError(f"{path}: contains mmCIF, not {kind}; give it the suffix .cif")
    if kind == "mmCIF" and first.startswith(_PDB_RECORDS):
        raise FormatError(f"{path}: contains PDB records, not mmCIF; give it the suffix .pdb")
