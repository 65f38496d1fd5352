"""Text files as lines, whatever their line ends, encoding and compression, with one sentence for each thing wrong.

Numbers in them, too: one strict reader for all formats.
"""

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
_LONGEST_LINE = 2**24  # characters; a bomb of gzip data is one line of gigabytes
_QUOTED = 60  # characters of a word that messages show
_NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_PDB_RECORDS = ("HEADER", "TITLE ", "REMARK", "CRYST1", "MODEL ", "ATOM  ", "HETATM")


def lines(source: str | PathLike[str], kind: str) -> Iterator[str]:
    """Read the lines of a text file, gzip or plain, without a byte-order mark and ending in ``\\n``.

    Windows and old Mac line ends are accepted; bytes that are not UTF-8 (Latin-1 remarks) become U+FFFD.

    source : a path, or an InputFile, whose bytes are taken
    kind : "PDB", "PQR", "mmCIF", "template" or "parameter": what the file should hold, for the messages

    Raises FormatError for a file that is missing, unreadable, empty, binary, HTML, damaged gzip or of another format.
    """
    file = read_file(source)
    packed = _packing(file)
    with (
        _sentences_of(file, packed),
        io.TextIOWrapper(io.BytesIO(_unpacked(file, packed, kind in _MAPS)), "utf-8-sig", "replace") as text,
    ):
        yield from _checked(text, file.path, kind)


def plain_bytes(source: str | PathLike[str]) -> bytes:
    """Read the content of a file, gzip or plain, for formats that count columns or bytes.

    Raises FormatError for a file that is missing or unreadable, and for gzip data that is damaged or much too large.
    """
    file = read_file(source)
    packed = _packing(file)
    with _sentences_of(file, packed):
        return _unpacked(file, packed)


_MAPS = ("DX", "cube")  # kinds of text files that hold maps
_PACKINGS = {".gz": "gzip", ".bz2": "bzip2"}  # by suffix


def _unpacked(file: InputFile, packed: str | None, is_map: bool = False) -> bytes:
    """Unpack a file, a part after the other, as far as its size is one that data of a molecule may have.

    So what is made to fill memory is refused before anything is read in it.
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
    """Find how a file is compressed by its first bytes, "gzip" or "bzip2"; None if it is not."""
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
    """FormatError in place of what gzip and bzip2 raise."""
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
    """Read the number in a field of a file, including NaN and infinities; None if it is not a number.

    Stricter than `float`, which accepts `1_0.0` and digits of other scripts.
    """
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def whole(text: str) -> int | None:
    """Read a whole number of plain digits, 18 at most; None for other texts, such as a superscript two."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def quoted(value: object) -> str:
    """A word of a file for messages: in quotation marks, control characters escaped, and no longer than a line."""
    try:
        text = str(value)
    except ValueError:  # a whole number of thousands of digits
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
