"""The columns of PDB lines, of all atoms of a model at once; see pdb."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints, Strings
from ..chemistry import element, is_polymer, is_water
from ..errors import FormatError
from ..textfiles import number
from .assembly import Records
from .models import Record
from .pdb_lines import repaired, residue_number

# The element column ends at 80; a line that is pushed to the right keeps it.
_WIDTH = 84
_NAME, _ALTLOC, _RESIDUE, _CHAIN, _NUMBER = slice(12, 16), slice(16, 17), slice(17, 21), slice(21, 22), slice(22, 27)
_OCCUPANCY, _SEGMENT, _ELEMENT = slice(54, 60), slice(72, 76), slice(76, 80)
IDENTITY = slice(12, 27)  # names of atom, residue and chain, and the residue's number
_ALTERNATE = re.compile(r"AC\d")
# Amino acids that programs write with a fourth letter for the protonation state or the disulphide.
_FOUR_LETTER_STEMS = ("HIS", "LYS", "ARG", "ASP", "GLU", "CYS")

Text = NDArray[np.uint8]


class Listed:
    """Atom lines of one model, _WIDTH characters each, their line numbers, and the chain ends before them.

    first_of_several : whether another model follows; model : number of this one
    """

    def __init__(self, found: Iterable[Record] = (), source: str = "") -> None:
        self.texts: list[str] = []
        self.numbers: array[int] = array("l")
        self.ters: list[int] = []
        self.ends: list[int] = []
        self.first_of_several = False
        self.model = 1
        for record in found:
            self.add(record, source)

    def add(self, record: Record, source: str) -> None:
        """Take up an atom, or the end of a chain; raises FormatError for letters that no column may hold."""
        if record.kind == "TER":
            self.ters.append(len(self.texts))
        elif record.kind == "END":
            self.ends.append(len(self.texts))
        else:
            text = record.line.rstrip().expandtabs(1)
            if not (text.isascii() and text.isprintable()):
                text = _plain(text, f"{source}:{record.line_number}")
            self.texts.append(text[:_WIDTH].ljust(_WIDTH))
            self.numbers.append(record.line_number)
            self.model = record.model


def _plain(text: str, where: str) -> str:
    text = text.replace("\u00a0", " ")
    strange = next((letter for letter in text[:54] if not (letter.isascii() and letter.isprintable())), None)
    if strange is not None:
        raise FormatError(
            f"{where}: holds the character {strange!a} among an atom's columns; only plain text may stand there"
        )
    return text.encode("ascii", "replace").decode()


def letters(listed: Listed) -> Text:
    """The lines as letters, (n, _WIDTH), that may be written to."""
    return np.frombuffer("".join(listed.texts).encode("ascii"), np.uint8).reshape(-1, _WIDTH).copy()


def records_of(listed: Listed, source: str) -> Records:
    """All atoms of the lines; raises FormatError for lines that cannot be read in one way only."""
    text = letters(listed)
    numbers = np.array(listed.numbers, np.int32)
    positions = positions_of(text, listed, source)
    residue_numbers, insertion_codes = _residue_numbers(text)
    residue_names, chains = _residue_names_and_chains(text)
    pieces, copies = (counted + _segments(text) for counted in _pieces(listed))
    return Records(
        positions=positions,
        names=_each(text, [_NAME], lambda name: "".join(name.split())),
        elements=_each(text, [_NAME, _RESIDUE, _ELEMENT], lambda s: element(s[:4], s[4:8].strip(), s[8:])),
        residue_names=residue_names,
        residue_numbers=residue_numbers,
        insertion_codes=insertion_codes,
        chains=chains,
        altlocs=_each(text, [_ALTLOC], str.strip),
        occupancies=_each(text, [_OCCUPANCY], _occupancy),
        hetero=text[:, 0] == ord("H"),
        pieces=pieces,
        copies=copies,
        lines=numbers,
    )


def positions_of(text: Text, listed: Listed, source: str) -> Floats:
    """Positions (n, 3) A; lines that are not in their columns are put into them, in `text` too."""
    positions = np.full((len(text), 3), np.nan)
    doubtful = ~_in_columns(text)
    try:
        positions[~doubtful] = np.ascontiguousarray(text[~doubtful, 30:54]).view("S8").astype(np.float64)
    except ValueError:
        doubtful[:] = True
    for i in np.flatnonzero(doubtful).tolist():
        line, position = repaired(listed.texts[i].rstrip(), f"{source}:{listed.numbers[i]}")
        text[i] = np.frombuffer(line[:_WIDTH].ljust(_WIDTH).encode("ascii"), np.uint8)
        positions[i] = position
    return positions


def _in_columns(text: Text) -> NDArray[np.bool_]:
    """(n,) True for lines surely in their columns: points, ends and blanks exactly where 8.3f coordinates have them."""
    allowed = np.zeros(256, np.bool_)
    allowed[list(b" -0123456789.")] = True
    digit = np.zeros(256, np.bool_)
    digit[list(b"0123456789")] = True
    record = np.all(text[:, :6] == list(b"ATOM  "), axis=1) | np.all(text[:, :6] == list(b"HETATM"), axis=1)
    points = np.all(text[:, [34, 42, 50]] == ord("."), axis=1) & np.all(digit[text[:, [37, 45, 53]]], axis=1)
    blanks = np.all(text[:, 27:30] == ord(" "), axis=1)
    numbered = _each(text, [_NUMBER], lambda columns: residue_number(columns) is not None)
    named = _each(text, [_NAME, _RESIDUE], lambda s: s[:4].strip() != "" and " " not in s[4:].strip())
    return np.asarray(record & points & blanks & numbered & named & np.all(allowed[text[:, 30:54]], axis=1))


def _residue_numbers(text: Text) -> tuple[Ints, Strings]:
    def read(columns: str) -> tuple[int, str]:
        return residue_number(columns) or (0, "")

    return (
        _each(text, [_NUMBER], lambda columns: read(columns)[0]).astype(np.int32),
        _each(text, [_NUMBER], lambda columns: read(columns)[1]),
    )


def _residue_names_and_chains(text: Text) -> tuple[Strings, Strings]:
    """Residue names and chain identifiers.

    Column 21 is the fourth letter of a residue name (GROMACS, CHARMM, VMD) or the first of a two-letter chain (large
    structures). The latter is meant in the whole file if, of the residue names and chains that have all five columns
    and are known in one of the ways, most are amino acids, nucleotides or waters of three letters.
    """
    distinct = np.unique(_each(text, [_RESIDUE, _CHAIN], str)).tolist()
    full = [columns for columns in distinct if len(columns) == 5 and " " not in columns[3:]]
    if sum(map(_votes_for_two_letter_chain, full)) > 0:
        return _each(text, [slice(17, 20)], str.strip), _each(text, [slice(20, 22)], str.strip)
    return _each(text, [_RESIDUE], str.strip), _each(text, [_CHAIN], str.strip)


def _votes_for_two_letter_chain(columns: str) -> int:
    """1 if three letters are a known residue, -1 if four are (TIP3, NMET), 0 if neither or hard to say (HISD)."""
    name = columns[:3].strip()
    if len(columns[:4].strip()) == 4 and (is_polymer(columns[:4]) or is_water(columns[:4])):
        return 0 if columns.startswith(_FOUR_LETTER_STEMS) else -1
    known = is_polymer(name) or is_water(name)
    return int(known and not columns.startswith(_FOUR_LETTER_STEMS))


def _pieces(listed: Listed) -> tuple[Ints, Ints]:
    """Chain piece of each atom over the file, and within the part that an END closes."""
    n = len(listed.texts)
    atoms = np.arange(n)
    ters, ends = np.array(listed.ters, np.int64), np.array(listed.ends, np.int64)
    after_ter = np.searchsorted(ters, atoms, side="right")
    after_end = np.searchsorted(ends, atoms, side="right")
    ters_at_end = np.concatenate([[0], np.searchsorted(ters, ends, side="right")])
    return (after_ter + after_end).astype(np.int32), (after_ter - ters_at_end[after_end]).astype(np.int32)


def _segments(text: Text) -> Ints:
    """Number of the segment that each atom is in: CHARMM's files tell chains of one letter apart by these names alone.

    Nothing is counted where a name comes back, or where names are those of X-PLOR's alternate locations (AC1, AC2).
    """
    names = _each(text, [_SEGMENT], str.strip)
    runs = np.append(names[:1], names[1:][names[1:] != names[:-1]])
    if len(np.unique(runs)) < len(runs) or "" in runs or any(_ALTERNATE.fullmatch(name) for name in runs.tolist()):
        return np.zeros(len(text), np.int32)
    return np.cumsum(np.append(np.zeros(1, np.bool_), names[1:] != names[:-1])[: len(text)], dtype=np.int32)


def _occupancy(columns: str) -> float:
    """Occupancy, 1 where the file has none that is a number."""
    value = number(columns)
    return 1.0 if value is None else min(max(value, 0.0), 1.0)


def _each(text: Text, columns: list[slice], function: Callable[[str], Any]) -> NDArray[Any]:
    """A function of some columns of every line, called once for each distinct content."""
    block = np.concatenate([text[:, part] for part in columns], axis=1)
    padded = np.zeros((len(block), -(-block.shape[1] // 8) * 8), np.uint8)
    padded[:, : block.shape[1]] = block
    codes = np.zeros(len(block), np.int64)
    first = np.zeros(1, np.int64)
    for word in padded.view(np.uint64).T:
        words, inverse = np.unique(word, return_inverse=True)
        _, first, codes = np.unique(codes * len(words) + inverse, return_index=True, return_inverse=True)
    return np.array([function(block[i].tobytes().decode("ascii")) for i in first.tolist()])[codes]
