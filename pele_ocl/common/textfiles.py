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
from .inputfile import InputFile, read_file

GZIP_MAGIC, BZIP2_MAGIC = b"\x1f\x8b", b"BZh"
_LONGEST_LINE = 2**24  # characters; a bomb of gzip data is one line of gigabytes
_MOST_BYTES = 2**32  # of gzip data, unpacked
_MOST_RATIO, _SMALL = 100, 2**28  # of unpacked to packed bytes, beyond so many bytes; structures have 3 to 30
_QUOTED = 60  # characters of a word that messages show
_NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_PDB_RECORDS = ("HEADER", "TITLE ", "REMARK", "CRYST1", "MODEL ", "ATOM  ", "HETATM")


def lines(source: str | PathLike[str], kind: str) -> Iterator[str]:
    """Read the lines of a text file, gzip or plain, without a byte-order mark and ending in ``\\n``.

    Windows and old Mac line ends are taken as they come; bytes that are not UTF-8 (Latin-1 remarks) become U+FFFD.

    source : a path, or an InputFile, whose bytes are taken
    kind : "PDB", "PQR", "mmCIF", "template" or "parameter": what the file should hold, for the messages

    Raises FormatError for a file that is missing, unreadable, empty, binary, HTML, damaged gzip or of another format.
    """
    file = read_file(source)
    packed = _packing(file)
    raw = io.BytesIO(file.data)
    with (
        _sentences_of(file, packed),
        io.TextIOWrapper(raw if packed is None else packed(file), "utf-8-sig", "replace") as text,
    ):
        yield from _checked(text, file.path, kind)


def plain_bytes(source: str | PathLike[str]) -> bytes:
    """Read the content of a file, gzip or plain, for formats that count columns or bytes.

    Raises FormatError for a file that is missing or unreadable, and for damaged gzip data or many GiB of it.
    """
    file = read_file(source)
    packed = _packing(file)
    if packed is None:
        return file.data
    parts, n_bytes = list[bytes](), 0
    with _sentences_of(file, packed), packed(file) as stream:
        while part := stream.read(_LONGEST_LINE):
            parts.append(part)
            n_bytes += len(part)
            if n_bytes > _MOST_BYTES:
                raise FormatError(
                    f"{file}: the {packed.kind} data holds more than {_MOST_BYTES >> 30} GiB; the file is damaged"
                )
    return b"".join(parts)


class _Gzip(gzip.GzipFile):
    """Content of a gzip file, as far as its size is one that data of a molecule may have."""

    kind = "gzip"

    def __init__(self, file: InputFile) -> None:
        super().__init__(fileobj=io.BytesIO(file.data), mode="rb")
        self._file = file

    def read(self, size: int | None = -1) -> bytes:
        return _checked_size(self._file, self.kind, super().read(size), self.tell())

    def read1(self, size: int = -1) -> bytes:
        return _checked_size(self._file, self.kind, super().read1(size), self.tell())


class _Bzip2(bz2.BZ2File):
    """Content of a bzip2 file, with the limit of gzip files."""

    kind = "bzip2"

    def __init__(self, file: InputFile) -> None:
        super().__init__(io.BytesIO(file.data))
        self._of = file

    def read(self, size: int | None = -1) -> bytes:
        return _checked_size(self._of, self.kind, super().read(-1 if size is None else size), self.tell())

    def read1(self, size: int = -1) -> bytes:
        return _checked_size(self._of, self.kind, super().read1(size), self.tell())


_SUFFIXES: dict[str, type[_Gzip] | type[_Bzip2]] = {".gz": _Gzip, ".bz2": _Bzip2}


def _checked_size(file: InputFile, kind: str, part: bytes, n_bytes: int) -> bytes:
    """Return the part, or raise FormatError if it ends beyond the size that a file of a molecule may have."""
    if n_bytes > max(_SMALL, _MOST_RATIO * len(file.data)):
        raise FormatError(
            f"{file}: the {kind} data unpacks to more than {_MOST_RATIO} times its size, as no file of a "
            f"molecule does; unpack it with {'gunzip' if kind == 'gzip' else 'bunzip2'} if it is right"
        )
    return part


def _packing(file: InputFile) -> type[_Gzip] | type[_Bzip2] | None:
    """Find how a file is compressed by its first bytes, None if it is not."""
    found: type[_Gzip] | type[_Bzip2] | None = None
    if file.data.startswith(GZIP_MAGIC):
        found = _Gzip
    elif file.data.startswith(BZIP2_MAGIC):
        found = _Bzip2
    meant = _SUFFIXES.get(file.suffix)
    if meant is not None and found is None:
        raise FormatError(
            f"{file}: not {meant.kind} data, although its name ends in {file.suffix}; take the suffix off"
        )
    return found


@contextmanager
def _sentences_of(file: InputFile, packed: type[_Gzip] | type[_Bzip2] | None) -> Iterator[None]:
    """FormatError in place of what gzip and bzip2 raise."""
    kind = "" if packed is None else packed.kind
    try:
        yield
    except EOFError:
        raise FormatError(f"{file}: the {kind} data ends too early; fetch or copy the file again") from None
    except (gzip.BadGzipFile, zlib.error):
        raise FormatError(f"{file}: the gzip data is damaged; fetch or copy the file again") from None
    except OSError as error:
        if packed is not _Bzip2:
            raise
        raise FormatError(f"{file}: the bzip2 data is damaged; fetch or copy the file again") from error


def number(text: str) -> float | None:
    """Read the number in a field of a file, NaN and infinities included; None if it holds none.

    Stricter than `float`, which takes `1_0.0` and digits of other scripts.
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
            raise FormatError(f"{path}:{number}: holds NUL bytes: the file is binary or damaged")
        if empty and line.strip():
            empty = False
            _refuse_other_formats(line, path, kind)
        yield line
    if empty:
        raise FormatError(f"{path}: the file is empty")


def _refuse_other_formats(first: str, path: Path, kind: str) -> None:
    if first.lstrip().startswith("<"):
        raise FormatError(f"{path}: holds HTML, not a {kind} file; was the download an error page?")
    if kind in ("PDB", "PQR") and first.startswith("data_"):
        raise FormatError(f"{path}: holds mmCIF, not {kind}; give it the suffix .cif")
    if kind == "mmCIF" and first.startswith(_PDB_RECORDS):
        raise FormatError(f"{path}: holds PDB records, not mmCIF; give it the suffix .pdb")
