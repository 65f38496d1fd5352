"""Sections of AMBER topologies, with fixed-width columns as written by Fortran.

Fields may touch, so blanks do not separate them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Strings
from ...common.errors import FormatError
from ...common.inputfile import InputFile
from ...common.notes import Note
from ...common.textfiles import plain_bytes, quoted

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_BLANK, _ZERO, _MINUS, _PLUS, _NEWLINE, _RETURN = np.frombuffer(b" 0-+\n\r", np.uint8)
_IN_NUMBERS = np.isin(np.arange(256), list(b"0123456789+-.eEdD "))
_IN_TEXTS = np.isin(np.arange(256), np.arange(32, 127))
_EXPONENT = np.arange(256, dtype=np.uint8)
_EXPONENT[list(b"dD")] = ord("E")  # Fortran's double precision: 1.0D+00


@dataclass(frozen=True, eq=False)
class Fields:
    """Fixed-width fields of several lines.

    where : name of the file, for messages; what : description of the content, such as "section CHARGE"
    text : the lines; first_line : line number of the first one
    per_line, width : fields per line, and characters per field
    """

    where: str
    what: str
    text: bytes
    first_line: int
    per_line: int
    width: int

    @cached_property
    def cells(self) -> Bytes:
        """Characters of the fields, (m, width), with short lines padded with blanks.

        Raises FormatError for lines that are too long.
        """
        widest = self.per_line * self.width
        even, rest = self._even_lines(widest)
        lines = [line.rstrip() for line in rest.splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        if lines and max(map(len, lines)) > widest:
            at = next(k for k, line in enumerate(lines) if len(line) > widest)
            raise FormatError(
                f"{self.where}:{self.first_line + len(even) + at}: {self.what}: the line has {len(lines[at])} "
                f"characters; {self.per_line} fields of {self.width} take {widest}"
            )
        n = max(len(lines) - 1, 0) * self.per_line + (-(-len(lines[-1]) // self.width) if lines else 0)
        filled = np.frombuffer(b"".join([line.ljust(widest) for line in lines]), np.uint8)[: n * self.width]
        return np.concatenate([even.reshape(-1, self.width), filled.reshape(n, self.width)])

    def _even_lines(self, widest: int) -> tuple[Bytes, bytes]:
        """Return the leading complete lines that end in \\n, (m, widest), and the remaining text."""
        end = widest + 1
        whole = np.frombuffer(self.text, np.uint8)[: len(self.text) // end * end].reshape(-1, end)
        full = (whole[:, -1] == _NEWLINE) & (whole[:, -2] != _BLANK)
        n = len(full) if full.all() else int(np.argmin(full))
        even = whole[:n, :-1]
        if (even == _NEWLINE).any() or (even == _RETURN).any():  # shorter lines that happen to align
            return even[:0], self.text
        return even, self.text[n * end :]

    def __len__(self) -> int:
        return len(self.cells)

    def at(self, index: int) -> str:
        """Return the location of a field for messages: `x.parm7:41: section CHARGE`."""
        return f"{self.where}:{self.first_line + index // self.per_line}: {self.what}"

    def whole_numbers(self) -> Integers:
        """Parse the fields as integers. Raises FormatError for invalid or truncated fields."""
        cells = self.cells
        columns = np.ascontiguousarray(cells.T)  # five times faster column by column
        values: Integers = np.zeros(len(cells), "i8" if self.width > 9 else "i4")
        n_digits = np.zeros(len(cells), np.int16)
        minus, begun, bad, is_digit = (np.zeros(len(cells), np.bool_) for _ in range(4))
        # Each field consists of blanks, an optional sign, and digits up to its end.
        for column in columns:
            digits = column - _ZERO
            is_digit, is_minus = digits < 10, column == _MINUS
            is_sign = is_minus | (column == _PLUS)
            bad |= ~is_digit & (begun | ~(is_sign | (column == _BLANK)))
            begun |= is_digit | is_sign
            minus |= is_minus
            n_digits += is_digit
            values *= 10
            values += np.where(is_digit, digits, 0)
        bad |= ~is_digit
        self._refuse(bad, "a whole number", lambda text: text.lstrip(b"+-").isdigit())
        self._refuse(n_digits > 18, "a number of less than 19 digits", lambda text: False)
        return np.where(minus, -values, values).astype(np.int64)

    def numbers(self) -> Floats:
        """Parse the fields as numbers in Fortran notation. Raises FormatError as whole_numbers, and if not finite."""
        cells = self.cells
        self._refuse(_has_others(_IN_NUMBERS, cells) | (cells[:, -1] == _BLANK), "a number", _is_number)
        texts = _as_bytes(_EXPONENT[cells])
        try:
            values = texts.astype(np.float64)
        except ValueError:
            self._refuse(~np.array([_is_number(text) for text in texts.tolist()], np.bool_), "a number", _is_number)
            raise
        self._refuse(~np.isfinite(values), "a finite number", lambda text: False)
        return values

    def texts(self) -> Strings:
        """Return the fields as texts without surrounding blanks. Raises FormatError if they are not ASCII."""
        self._refuse(_has_others(_IN_TEXTS, self.cells), "a text in ASCII", lambda text: False)
        found: Strings = np.char.strip(_as_bytes(self.cells)).astype(f"U{self.width}")
        return found

    def _refuse(self, bad: NDArray[np.bool_] | np.bool_, wanted: str, is_fine: Callable[[bytes], bool]) -> None:
        """Raise FormatError for the first bad field. is_fine : whether a text would be valid if it were aligned"""
        if not bad.any():
            return
        k = int(np.argmax(bad))
        text = self.cells[k].tobytes()
        place = f"{self.at(k)}: field {k % self.per_line + 1}"
        if set(text.strip()) == {ord("*")}:
            raise FormatError(f"{place} is {quoted(text.decode())}: its number was too large for the columns")
        if not text.strip():
            raise FormatError(f"{place} is blank; expected {wanted} in {self.width} columns")
        if is_fine(text.strip()):
            raise FormatError(f"{place}, {quoted(text.decode())}, does not end in the last of its {self.width} columns")
        raise FormatError(f"{place}, {quoted(text.decode('latin-1'))}, is not {wanted} in {self.width} columns")


def _has_others(known: NDArray[np.bool_], cells: Bytes) -> NDArray[np.bool_]:
    """Return a mask (m,) of the fields (m, k) with a character that is not allowed. known : (256,)"""
    found = known[cells]
    if found.all():  # the usual case, faster than checking each row
        return np.zeros(len(cells), np.bool_)
    return np.asarray(~found.all(axis=1))


def _as_bytes(cells: Bytes) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(cells).view(f"S{cells.shape[1]}").ravel()


def _is_number(text: bytes) -> bool:
    """Return whether Python can parse a field as a finite number."""
    try:
        return bool(np.isfinite(float(text))) and b"_" not in text
    except ValueError:
        return False


# (20a4), (10I8), (5E16.8), (1a80), (a80), and (8(F9.5)) in CMAP sections.
_FORMAT = re.compile(rb"%FORMAT\s*\(\s*(\d{0,4})\s*\(?\s*([aAiIeEfFdDgG])\s*(\d{1,3})(?:\.\d{1,3})?\s*\)?\s*\)\s*")
_KINDS = {"a": "texts as (20a4)", "i": "whole numbers as (10I8)", "e": "numbers as (5E16.8)"}
_GROMACS = re.compile(rb"^\s*(\[\s*\w+\s*\]|#include\b|#define\b)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Section:
    """One section. line : number of its %FLAG line; kind : "a" for texts, "i" for integers, "e" for numbers, "" for
    unknown formats
    """

    name: str
    line: int
    kind: str
    fields: Fields


@dataclass(frozen=True, eq=False)
class Sections:
    """Sections of a file by name, with methods that check the type and number of the values.

    file : path, for messages; n_lines : number of lines in the file
    """

    file: str
    n_lines: int
    found: Mapping[str, Section]

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def section(self, name: str) -> Section:
        """Return a section. Raises FormatError if the file does not have it."""
        if name not in self.found:
            last = max(self.found.values(), key=lambda section: section.line).name
            raise FormatError(
                f"{self.file}:{self.n_lines}: ends with section {last}, without a section {name}; is it complete?"
            )
        return self.found[name]

    def whole_numbers(self, name: str, count: int | None = None) -> Integers:
        """Read a section of integers. count : required number of values; None for any number"""
        return self._checked(name, "i", count).whole_numbers()

    def numbers(self, name: str, count: int | None = None) -> Floats:
        """Read a section of numbers."""
        return self._checked(name, "e", count).numbers()

    def texts(self, name: str, count: int | None = None) -> Strings:
        """Read a section of texts, without surrounding blanks."""
        return self._checked(name, "a", count).texts()

    def optional_texts(self, name: str, count: int) -> Strings | None:
        """Read a section of texts, whose trailing values may be blank; None if the file does not have it."""
        if name not in self:
            return None
        texts = self.texts(name)
        return (
            np.concatenate([texts, np.full(count - len(texts), "")]) if len(texts) < count else self.texts(name, count)
        )

    def at(self, name: str, index: int) -> str:
        """Return the location of a value for messages: `x.parm7:41: section CHARGE`."""
        return self.section(name).fields.at(index)

    def _checked(self, name: str, kind: str, count: int | None) -> Fields:
        section = self.section(name)
        where = f"{self.file}:{section.line}: section {name}"
        if section.kind != kind:
            raise FormatError(f"{where}: its %FORMAT is missing or of another kind; expected {_KINDS[kind]}")
        if count is not None and len(section.fields) != count:
            raise FormatError(
                f"{where} contains {len(section.fields):,} values; according to POINTERS there are {count:,}"
            )
        return section.fields


def read_sections(file: InputFile) -> Sections:
    """Read the sections of a file, plain or gzip.

    Raises FormatError for other files, including GROMACS topologies, and for duplicate sections.
    """
    data = plain_bytes(file)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # line ends of old Macs
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
    """Find the offsets of the %FLAG lines."""
    found = [0] if data.startswith(b"%FLAG") else []
    at = data.find(b"\n%FLAG")
    while at >= 0:
        found.append(at + 1)
        at = data.find(b"\n%FLAG", at + 1)
    return found


def _section(file: str, text: bytes, line: int) -> Section:
    """Parse the text of a section that begins with %FLAG on a line of the file."""
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
    """Raise FormatError for a file without any %FLAG."""
    if not data.strip():
        raise FormatError(f"{file}: the file is empty")
    if data.lstrip().startswith(b"<"):
        raise FormatError(f"{file}: contains HTML, not an AMBER topology; was the download an error page?")
    if _GROMACS.search(data):
        raise FormatError(
            f"{file}: a GROMACS topology; load it with OpenMM's GromacsTopFile and give its system to "
            "pele_ocl.from_openmm"
        )
    raise FormatError(f"{file}: contains no %FLAG; expected an AMBER topology of version 7 or later (prmtop, parm7)")


# Names of the values in POINTERS, in order.
_ORDER = (
    "NATOM NTYPES NBONH MBONA NTHETH MTHETA NPHIH MPHIA NHPARM NPARM NNB NRES NBONA NTHETA NPHIA NUMBND NUMANG NPTRA "
    "NATYP NPHB IFPERT NBPER NGPER NDPER MBPER MGPER MDPER IFBOX NMXRS IFCAP NUMEXTRA"
).split()
_LEAST = 30  # NUMEXTRA was added later


class SectionCounts(NamedTuple):
    """Counts from POINTERS. `bonds`, `angles` and `torsions` are pairs: terms with hydrogen, and without."""

    atoms: int
    residues: int
    types: int
    excluded: int
    bonds: tuple[int, int]
    angles: tuple[int, int]
    torsions: tuple[int, int]
    bond_types: int
    angle_types: int
    torsion_types: int
    hbond_types: int


def read_counts(sections: Sections) -> tuple[SectionCounts, tuple[str, ...]]:
    """Read the counts, with notes about the box and the solvent cap.

    Raises FormatError for impossible counts, and for unsupported features: perturbation, locally enhanced sampling,
    AMOEBA, polarizabilities and LENNARD_JONES_DCOEF.
    """
    values = sections.whole_numbers("POINTERS")
    if len(values) < _LEAST:
        where = sections.at("POINTERS", len(values))
        raise FormatError(f"{where} contains {len(values)} values; expected {_LEAST} or more")
    pointers = dict(zip(_ORDER, values.tolist(), strict=False))
    for k, (name, value) in enumerate(pointers.items()):
        if value < (name in ("NATOM", "NRES", "NTYPES")) or value >= 2**31:
            raise FormatError(f"{sections.at('POINTERS', k)}: {name} is {value:,}, which is impossible")
    _refuse_kinds(sections, pointers)
    counts = SectionCounts(
        atoms=pointers["NATOM"],
        residues=pointers["NRES"],
        types=pointers["NTYPES"],
        excluded=pointers["NNB"],
        bonds=(pointers["NBONH"], pointers["NBONA"]),
        angles=(pointers["NTHETH"], pointers["NTHETA"]),
        torsions=(pointers["NPHIH"], pointers["NPHIA"]),
        bond_types=pointers["NUMBND"],
        angle_types=pointers["NUMANG"],
        torsion_types=pointers["NPTRA"],
        hbond_types=pointers["NPHB"],
    )
    return counts, tuple(_notes(sections.file, pointers))


def _refuse_kinds(sections: Sections, pointers: dict[str, int]) -> None:
    """Raise FormatError for energy terms that are not supported."""
    for name, what in (("IFPERT", "perturbation"), ("NPARM", "locally enhanced sampling")):
        if pointers[name]:
            where = sections.at("POINTERS", _ORDER.index(name))
            raise FormatError(
                f"{where}: {name} is {pointers[name]}: {what}, which is not supported; create a topology without it"
            )
    if "AMOEBA_FORCEFIELD" in sections:
        line = sections.section("AMOEBA_FORCEFIELD").line
        raise FormatError(f"{sections.file}:{line}: section AMOEBA_FORCEFIELD: the AMOEBA force field is not supported")
    for name in ("IPOL", "LENNARD_JONES_DCOEF"):
        if name in sections:
            section = sections.section(name)
            values = sections.whole_numbers(name) if section.kind == "i" else sections.numbers(name)
            if values.any():
                what = "polarizabilities are" if name == "IPOL" else "12-6-4 Lennard-Jones terms are"
                raise FormatError(f"{sections.at(name, int(np.argmax(values != 0)))}: {what} not supported")


def _notes(file: str, pointers: dict[str, int]) -> list[str]:
    notes = list[str]()
    if pointers["IFBOX"]:
        notes.append(Note(f"{file}: its periodic box is ignored: the molecule has no periodic images", code="cell"))
    if pointers["IFCAP"]:
        notes.append(f"{file}: its water cap is not restrained")
    return notes
