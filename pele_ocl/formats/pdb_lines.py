"""Single ATOM lines whose columns are not where the PDB format puts them.

A line is read by columns or by blank-separated words. Where only one way makes sense, or both agree, that is the
reading; where they disagree, or neither holds, the line is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NoReturn, TypeAlias

from ..chemistry import aligned_name, element, is_polymer
from ..errors import FormatError
from ..textfiles import number, quoted

Position: TypeAlias = tuple[float, float, float]


# Coordinates that touch can be told apart by their sign or by the three decimals that the format gives each.
_WORDS = re.compile(
    r"""\s*(?P<record>ATOM|HETATM)\s*(?P<serial>\d+|\*+|[A-Za-z][0-9A-Za-z]{4})
    \s+(?P<name>\S{1,4})
    \s+(?P<residue>[\w+-]{1,4})
    \s+(?:(?P<letter>[A-Za-z])\s*|(?P<digit>\d)\s+)?(?P<number>-?(?:0|[1-9]\d{0,4}))(?P<icode>[A-Za-z]?)
    (?:\s+|(?=-))
    (?:(?P<x>[-+]?\d+\.\d+)\s+(?P<y>[-+]?\d+\.\d+)\s+(?P<z>[-+]?\d+\.\d+)(?=\s|$)
      |(?P<x3>-?\d+\.\d{3})\s*(?P<y3>-?\d+\.\d{3})\s*(?P<z3>-?\d+\.\d{3})(?=[\s-]|$))
    (?P<rest>.*)""",
    re.VERBOSE | re.IGNORECASE,
)
_ATOM = re.compile(r"\s*(?:(?:ATOM|HETATM)(?![A-Z])|(?:atom|hetatm)(?![a-z]))")
_IDENTITY = (slice(12, 16), slice(17, 21), slice(21, 22), slice(22, 27))
_HYBRID_36 = re.compile(r"[A-Z][0-9A-Z]{3}|[a-z][0-9a-z]{3}")


def is_atom_line(line: str) -> bool:
    """Whether a line that does not begin with exactly `ATOM  ` or `HETATM` means to: moved, lower case or cut short."""
    return _ATOM.match(line) is not None or line.strip() in ("AT", "ATO", "HE", "HETA", "HETAT")


def residue_number(columns: str) -> tuple[int, str] | None:
    """Residue number and insertion code of columns 23-27; None if they hold no number.

    Five digits are one number; a letter followed by three digits or letters is hybrid-36 (Grosse-Kunstleve 2007),
    which goes on after 9999 with A000 and, after ZZZZ, with a000.
    """
    if re.fullmatch(r" *[-+]?\d+ *", columns):
        return int(columns), ""
    digits, code = columns[:4], columns[4:].strip()
    if re.fullmatch(r" *[-+]?\d+ *", digits):
        return int(digits), code
    if _HYBRID_36.fullmatch(digits) and not code.isdigit():
        return int(digits, 36) + 10_000 + (-10 if digits[0].isupper() else 16) * 36**3, code
    return None


def repaired(line: str, where: str) -> tuple[str, Position]:
    """A line with its fields in the right columns, and the position it holds in A.

    line : an ATOM or HETATM line without tabs
    where : file and line for the message

    Raises FormatError unless the line can be read in exactly one way.
    """
    by_columns = _by_columns(line)
    by_words = _by_words(line)
    if by_columns and (by_words is None or (by_words[1] == by_columns and _same_atom(by_words[0], line))):
        return line, by_columns
    if by_words and not by_columns:
        return by_words
    _refuse(line, where)


def _same_atom(line: str, other: str) -> bool:
    return all(line[field].strip() == other[field].strip() for field in _IDENTITY)


def _finite(text: str) -> float | None:
    value = number(text)
    return value if value is not None and math.isfinite(value) else None


def _is_cut(coordinates: list[str]) -> bool:
    """Whether a line that ends with these coordinates ended too early: some lack, or the last has fewer decimals."""
    decimals = [len(text.strip().partition(".")[2]) for text in coordinates]
    return len(decimals) < 3 or decimals[2] < min(decimals[:2])


def _by_columns(line: str) -> Position | None:
    x, y, z, occupancy = line[30:38], line[38:46], line[46:54], line[54:60].strip()
    values = [_finite(text.strip()) for text in (x, y, z)]
    if line[:6] not in ("ATOM  ", "HETATM") or residue_number(line[22:27]) is None or None in values:
        return None
    misplaced = line[27:30].strip() or not line[12:16].strip() or " " in line[17:21].strip()
    # A number that goes on in the next column, or what is no occupancy behind z: the columns have moved.
    crossed = any(re.fullmatch(r"[\d.]{2}", line[end - 1 : end + 1]) for end in (38, 46, 54))
    pushed = (crossed and not _has_points(line)) or (occupancy and ("." not in occupancy or _finite(occupancy) is None))
    cut = len(line) < 54 and _is_cut([x, y, z])
    # Numbers that end elsewhere than the format's may be y, z and the occupancy, without an x before them.
    shifted = not _has_points(line) and not (_decimals_agree([x, y, z]) or _is_complete(line))
    if misplaced or pushed or cut or shifted or not all("." in text for text in (x, y, z)):
        return None
    return values[0], values[1], values[2]  # type: ignore[return-value]


def _decimals_agree(coordinates: Iterable[str]) -> bool:
    return len({len(text.strip().partition(".")[2]) for text in coordinates}) == 1


def _is_complete(line: str) -> bool:
    """Whether occupancy and B factor stand where the format has them."""
    occupancy, b_factor = line[54:60], line[60:66]
    return line[57:58] == line[63:64] == "." and None not in (_finite(occupancy), _finite(b_factor))


def _has_points(line: str) -> bool:
    """Whether the decimal points are where three decimals put them."""
    return line[34:35] == line[42:43] == line[50:51] == "."


def _by_words(line: str) -> tuple[str, Position] | None:
    found = _WORDS.match(line)
    if found is None:
        return None
    word = found.groupdict(default="")
    x, y, z = (word[axis] or word[axis + "3"] for axis in "xyz")
    chain, residue = word["letter"] or word["digit"], word["residue"]
    # Where a coordinate is blank the occupancy would take its place; its decimals or the missing B factor tell.
    equal = _decimals_agree((x, y, z))
    complete = re.match(r"\s+\d*\.\d+\s+-?\d*\.\d+", word["rest"]) is not None
    # AALA may be alternate location A of ALA; a single letter without a chain may be the chain.
    glued = len(residue) == 4 and residue[0] not in "NC" and is_polymer(residue[1:])
    if not (equal or complete) or glued or (len(residue) == 1 and not chain):
        return None
    last = (word["rest"].split() or [""])[-1]
    means_element = word["name"].lstrip("0123456789").upper().startswith(last.rstrip("0123456789+-").upper())
    symbol = element(word["name"], residue, last if means_element else "")
    name = aligned_name(word["name"], symbol)
    residue_columns = (f"{word['number']:>4}" + word["icode"]).ljust(5)
    left = f"{word['record'].upper():<6}{word['serial'][:5]:>5} {name} {residue:>3}".ljust(21)
    return f"{left}{chain or ' '}{residue_columns}".ljust(76) + f"{symbol:>2}", (float(x), float(y), float(z))


def _refuse(line: str, where: str) -> NoReturn:
    atom = " ".join(line[12:27].split())
    fields = {axis: line[start : start + 8].strip() for axis, start in (("x", 30), ("y", 38), ("z", 46))}
    for text in [*fields.values(), *line.split()[5:]]:
        if _finite(text) is None and number(text) is not None:
            raise FormatError(f"{where}: a coordinate of atom {atom} is {quoted(text)}; a finite number is needed")
    numbers = re.findall(r"-?\d+\.\d*", line)
    if len(line) < 54 and len(numbers) <= 3 and _is_cut(numbers):
        raise FormatError(f"{where}: the line ends before the coordinates do; the file is cut short or damaged")
    bad = {axis: text for axis, text in fields.items() if _finite(text) is None}
    if len(bad) == 1 and " " not in (text := next(iter(bad.values()))):
        raise FormatError(f"{where}: the {next(iter(bad))} coordinate of atom {atom} is {text!r}, not a number")
    whole = next((axis for axis, text in fields.items() if "." not in text), None)
    if not bad and whole is not None:
        raise FormatError(
            f"{where}: the {whole} coordinate of atom {atom} is {fields[whole]!r}, without a decimal point"
        )
    if not bad and line[12:16].strip() == "":
        raise FormatError(f"{where}: the atom has no name in columns 13-16")
    if not bad and residue_number(line[22:27]) is None:
        raise FormatError(f"{where}: residue number {line[22:26].strip()!r} in columns 23-26 is not a number")
    raise FormatError(
        f"{where}: the columns are not where the PDB format has them; x stands in 31-38, y in 39-46, z in 47-54"
    )
