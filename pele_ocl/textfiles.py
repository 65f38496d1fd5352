"""Text files as lines, whatever their line ends, encoding and compression, with one sentence for each thing wrong.

Numbers in them, too: one strict reader for all formats.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from .errors import FormatError

_GZIP_MAGIC = b"\x1f\x8b"
_NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_PDB_RECORDS = ("HEADER", "TITLE ", "REMARK", "CRYST1", "MODEL ", "ATOM  ", "HETATM")


def lines(path: Path, kind: str) -> Iterator[str]:
    """The lines of a text file, gzip or plain, without a byte-order mark and ending in ``\\n``.

    Windows and old Mac line ends are taken as they come; bytes that are not UTF-8 (Latin-1 remarks) become U+FFFD.

    kind : "PDB", "PQR", "mmCIF", "template" or "parameter": what the file should hold, for the messages

    Raises FormatError for a file that is missing, unreadable, empty, binary, HTML, damaged gzip or of another format.
    """
    try:
        with open(path, "rb") as raw:
            compressed = raw.peek(2)[:2] == _GZIP_MAGIC
            if path.suffix.lower() == ".gz" and not compressed:
                raise FormatError(f"{path}: not gzip data, although its name ends in .gz; take the suffix off")
            stream = gzip.open(raw) if compressed else raw
            with io.TextIOWrapper(stream, "utf-8-sig", "replace") as text:
                yield from _checked(text, path, kind)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: a folder; name a file in it") from None
    except PermissionError:
        raise FormatError(f"{path}: no permission to read the file") from None
    except EOFError:
        raise FormatError(f"{path}: the gzip data ends too early; fetch or copy the file again") from None
    except (gzip.BadGzipFile, zlib.error):
        raise FormatError(f"{path}: the gzip data is damaged; fetch or copy the file again") from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None


def number(text: str) -> float | None:
    """The number that a field of a file holds, NaN and infinities included; None if it holds none.

    Stricter than `float`, which takes `1_0.0` and digits of other scripts.
    """
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _checked(text: Iterator[str], path: Path, kind: str) -> Iterator[str]:
    empty = True
    for number, line in enumerate(text, 1):
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
