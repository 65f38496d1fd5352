"""The sections of an AMBER topology: %FLAG, %FORMAT, and values in columns of a fixed width."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ...atoms import Floats, Strings
from ...errors import FormatError
from ...inputfile import InputFile
from ...textfiles import plain_bytes, quoted
from .fields import Fields, Integers

# (20a4), (10I8), (5E16.8), (1a80), (a80), and (8(F9.5)) of CMAP.
_FORMAT = re.compile(rb"%FORMAT\s*\(\s*(\d{0,4})\s*\(?\s*([aAiIeEfFdDgG])\s*(\d{1,3})(?:\.\d{1,3})?\s*\)?\s*\)\s*")
_KINDS = {"a": "texts as (20a4)", "i": "whole numbers as (10I8)", "e": "numbers as (5E16.8)"}
_GROMACS = re.compile(rb"^\s*(\[\s*\w+\s*\]|#include\b|#define\b)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Section:
    """One section. line : that of %FLAG; kind : "a", "i" or "e" for texts, whole numbers and numbers; "" for others."""

    name: str
    line: int
    kind: str
    fields: Fields


@dataclass(frozen=True, eq=False)
class Sections:
    """The sections of a file by name; a name with values of the right kind and number, or a FormatError.

    file : path, for messages; n_lines : lines of the file
    """

    file: str
    n_lines: int
    found: Mapping[str, Section]

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def section(self, name: str) -> Section:
        """The section; raises FormatError where the file lacks it."""
        if name not in self.found:
            last = max(self.found.values(), key=lambda section: section.line).name
            raise FormatError(
                f"{self.file}:{self.n_lines}: ends with section {last}, without a section {name}; is it complete?"
            )
        return self.found[name]

    def whole_numbers(self, name: str, count: int | None = None) -> Integers:
        """The values of a section of whole numbers. count : how many there must be; None for any number"""
        return self._checked(name, "i", count).whole_numbers()

    def numbers(self, name: str, count: int | None = None) -> Floats:
        """The values of a section of numbers."""
        return self._checked(name, "e", count).numbers()

    def texts(self, name: str, count: int | None = None) -> Strings:
        """The values of a section of texts, without blanks around them."""
        return self._checked(name, "a", count).texts()

    def optional_texts(self, name: str, count: int) -> Strings | None:
        """The values of a section of texts, the last of which may be blank; None where the file lacks it."""
        if name not in self:
            return None
        texts = self.texts(name)
        return (
            np.concatenate([texts, np.full(count - len(texts), "")]) if len(texts) < count else self.texts(name, count)
        )

    def at(self, name: str, index: int) -> str:
        """Where a value stands, for messages: `x.parm7:41: section CHARGE`."""
        return self.section(name).fields.at(index)

    def _checked(self, name: str, kind: str, count: int | None) -> Fields:
        section = self.section(name)
        where = f"{self.file}:{section.line}: section {name}"
        if section.kind != kind:
            raise FormatError(f"{where}: its %FORMAT is missing or of another kind; {_KINDS[kind]} are needed")
        if count is not None and len(section.fields) != count:
            raise FormatError(f"{where} holds {len(section.fields):,} values; by POINTERS there are {count:,}")
        return section.fields


def read_sections(file: InputFile) -> Sections:
    """The sections of a file, plain or gzip.

    Raises FormatError for other files, a GROMACS topology among them, and for a section that is there twice.
    """
    data = plain_bytes(file)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # old Mac line ends
    begins = _flags(data)
    if not begins:
        _refuse(file, data)
    found, line = dict[str, Section](), 1 + data.count(b"\n", 0, begins[0])
    for begin, end in zip(begins, [*begins[1:], len(data)], strict=True):
        section = _section(str(file), data[begin:end], line)
        if section.name in found:
            first = found[section.name].line
            raise FormatError(f"{file}:{line}: a second section {quoted(section.name)}; the first is on line {first}")
        found[section.name] = section
        line += data.count(b"\n", begin, end)
    return Sections(str(file), line, found)


def _flags(data: bytes) -> list[int]:
    """Where the lines %FLAG begin."""
    found = [0] if data.startswith(b"%FLAG") else []
    at = data.find(b"\n%FLAG")
    while at >= 0:
        found.append(at + 1)
        at = data.find(b"\n%FLAG", at + 1)
    return found


def _section(file: str, text: bytes, line: int) -> Section:
    """The section of a text that begins with %FLAG, on that line of the file."""
    head, _, body = text.partition(b"\n")
    name = head[5:].strip().decode("ascii", "replace")
    first, kind, per_line, width = line + 1, "", 1, 80
    while body.startswith(b"%"):
        head, _, body = body.partition(b"\n")
        if form := _FORMAT.fullmatch(head):
            letter = form[2].decode().lower()
            kind = letter if letter in "ai" else "e"
            per_line, width = int(form[1] or 1), int(form[3])
            if not (per_line and width):
                raise FormatError(f"{file}:{first}: section {name}: a format of no fields, {quoted(head.decode())}")
        first += 1
    if b"\n%" in body:
        n_lines = 1 + body.count(b"\n", 0, body.index(b"\n%"))
        raise FormatError(f"{file}:{first + n_lines}: section {name}: a line with % among its values")
    return Section(name, line, kind, Fields(file, f"section {name}", body, first, per_line, width))


def _refuse(file: InputFile, data: bytes) -> NoReturn:
    """Raise for a file without any %FLAG."""
    if not data.strip():
        raise FormatError(f"{file}: the file is empty")
    if data.lstrip().startswith(b"<"):
        raise FormatError(f"{file}: holds HTML, not an AMBER topology; was the download an error page?")
    if _GROMACS.search(data):
        raise FormatError(
            f"{file}: a GROMACS topology; load it with OpenMM's GromacsTopFile and give its system to pele_ocl.from_openmm"
        )
    raise FormatError(f"{file}: holds no %FLAG; an AMBER topology of version 7 or later (prmtop, parm7) is needed")
