"""Reader of PDB files (wwPDB format 3.3, section 9), including common deviations from the format.

The columns are parsed here, for all atoms at once, instead of using gemmi's PDB reader, which is too lenient for force
fields: it reads ``1.0x0`` as 1.0, stops at the first END, does not keep line numbers, and merges residues that are
apart in the file, which reorders atoms. Elements and residue kinds come from gemmi.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints, Strings, Structure
from ..atoms.chemistry import aligned_name, element, is_polymer, is_water
from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, number, quoted
from .assembly import ListedAtoms, fill_readable, first_readable, model_note, shown_models, structure
from .cells import pdb_cell
from .registry import StructureFormat

if TYPE_CHECKING:
    import gemmi

_MODEL_NUMBER = re.compile("[0-9]{1,9}")


class PdbRecord(NamedTuple):
    """A record of a PDB file.

    kind : "ATOM" for ATOM and HETATM records, otherwise "TER" or "END"
    ordinal, model : index of the model in the file, from 0, and its number
    line_number, line : line number, from 1, and the text including the line end
    """

    kind: Literal["ATOM", "TER", "END"]
    ordinal: int
    model: int
    line_number: int
    line: str


def records(stream: Iterable[str], source: object, is_atom: Callable[[str], bool]) -> Iterator[PdbRecord]:
    """Yield the ATOM, HETATM, TER and END records in order.

    Models are numbered by MODEL records, or counted by ENDMDL records if there are none. MODEL records without a number
    are also counted. These records may be in lower case.

    stream : lines of the file
    source : the file, for messages
    is_atom : returns whether a line is an atom record

    Raises FormatError for atoms between ENDMDL and MODEL.
    """
    model, ordinal, filled = 1, 0, False
    explicit = closed = False
    for line_number, line in enumerate(stream, 1):
        if is_atom(line):
            if closed and explicit:
                raise FormatError(f"{source}:{line_number}: an atom between ENDMDL and MODEL; move it into a model")
            if closed:
                model, ordinal, closed = model + 1, ordinal + filled, False
            filled = True
            yield PdbRecord("ATOM", ordinal, model, line_number, line)
            continue
        name = line[:6].rstrip().upper()
        if name == "MODEL":
            ordinal, filled = ordinal + filled, False
            word = next(iter(line.split()[1:]), "")
            model = int(word) if _MODEL_NUMBER.fullmatch(word) else ordinal + 1
            explicit, closed = True, False
        elif name == "ENDMDL":
            closed = True
        elif name.startswith("TER"):
            yield PdbRecord("TER", ordinal, model, line_number, line)
        elif name == "END":
            yield PdbRecord("END", ordinal, model, line_number, line)


def model_numbers_of(found: Iterable[PdbRecord], source: object) -> list[int]:
    """Return the numbers of the models with atoms. Raises FormatError for duplicate numbers."""
    numbers = dict[int, tuple[int, int]]()
    for record in found:
        if record.kind == "ATOM":
            ordinal, line_number = numbers.setdefault(record.model, (record.ordinal, record.line_number))
            if ordinal != record.ordinal:
                raise FormatError(
                    f"{source}:{record.line_number}: a second model {record.model}; the first begins before line "
                    f"{line_number}: give each model a different number"
                )
    return list(numbers)


Position: TypeAlias = tuple[float, float, float]


# Adjacent coordinates without a blank are separated by their sign or by the three decimals of the format.
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
    """Return whether a line begins with a shifted, lower-case or truncated `ATOM  ` or `HETATM`."""
    return _ATOM.match(line) is not None or line.strip() in ("AT", "ATO", "HE", "HETA", "HETAT")


def residue_number(columns: str) -> tuple[int, str] | None:
    """Parse the residue number and insertion code in columns 23-27; None if they contain no number.

    Five digits are one number. A letter followed by three digits or letters is hybrid-36 (Grosse-Kunstleve 2007), which
    continues after 9999 with A000, and after ZZZZ with a000.
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
    """Return a line with its fields moved to the standard columns, and its position in A.

    line : an ATOM or HETATM line without tabs
    where : file and line, for messages

    Raises FormatError unless there is exactly one way to parse the line.
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
    """Return whether a line with these coordinates is truncated: some are missing or the last has fewer decimals."""
    decimals = [len(text.strip().partition(".")[2]) for text in coordinates]
    return len(decimals) < 3 or decimals[2] < min(decimals[:2])


def _by_columns(line: str) -> Position | None:
    x, y, z, occupancy = line[30:38], line[38:46], line[46:54], line[54:60].strip()
    values = [_finite(text.strip()) for text in (x, y, z)]
    if line[:6] not in ("ATOM  ", "HETATM") or residue_number(line[22:27]) is None or None in values:
        return None
    misplaced = line[27:30].strip() or not line[12:16].strip() or " " in line[17:21].strip()
    # The columns are shifted if a number crosses their boundary or z is not followed by an occupancy.
    crossed = any(re.fullmatch(r"[\d.]{2}", line[end - 1 : end + 1]) for end in (38, 46, 54))
    pushed = (crossed and not _has_points(line)) or (occupancy and ("." not in occupancy or _finite(occupancy) is None))
    cut = len(line) < 54 and _is_cut([x, y, z])
    # Numbers that end in other columns may be y, z and the occupancy, with x missing.
    shifted = not _has_points(line) and not (_decimals_agree([x, y, z]) or _is_complete(line))
    if misplaced or pushed or cut or shifted or not all("." in text for text in (x, y, z)):
        return None
    return values[0], values[1], values[2]  # type: ignore[return-value]


def _decimals_agree(coordinates: Iterable[str]) -> bool:
    return len({len(text.strip().partition(".")[2]) for text in coordinates}) == 1


def _is_complete(line: str) -> bool:
    """Return whether occupancy and B-factor are in their standard columns."""
    occupancy, b_factor = line[54:60], line[60:66]
    return line[57:58] == line[63:64] == "." and None not in (_finite(occupancy), _finite(b_factor))


def _has_points(line: str) -> bool:
    """Return whether the decimal points of x, y and z are in their standard columns."""
    return line[34:35] == line[42:43] == line[50:51] == "."


def _by_words(line: str) -> tuple[str, Position] | None:
    found = _WORDS.match(line)
    if found is None:
        return None
    word = found.groupdict(default="")
    x, y, z = (word[axis] or word[axis + "3"] for axis in "xyz")
    chain, residue = word["letter"] or word["digit"], word["residue"]
    # If a coordinate is blank, the occupancy is read in its place; other decimals or a missing B-factor reveal this.
    equal = _decimals_agree((x, y, z))
    complete = re.match(r"\s+\d*\.\d+\s+-?\d*\.\d+", word["rest"]) is not None
    # AALA may be alternate location A of ALA; a residue name of one letter may be the chain.
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
            raise FormatError(f"{where}: a coordinate of atom {atom} is {quoted(text)}; expected a finite number")
    numbers = re.findall(r"-?\d+\.\d*", line)
    if len(line) < 54 and len(numbers) <= 3 and _is_cut(numbers):
        raise FormatError(f"{where}: the line ends before the coordinates do; the file is truncated or damaged")
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
        f"{where}: the columns are not where the PDB format has them; x is in 31-38, y in 39-46, z in 47-54"
    )


# The element ends in column 80; this leaves room for lines shifted to the right.
_WIDTH = 84
_NAME, _ALTLOC, _RESIDUE, _CHAIN, _NUMBER = slice(12, 16), slice(16, 17), slice(17, 21), slice(21, 22), slice(22, 27)
_OCCUPANCY, _SEGMENT, _ELEMENT = slice(54, 60), slice(72, 76), slice(76, 80)
IDENTITY = slice(12, 27)  # atom name, residue name, chain and residue number
_ALTERNATE = re.compile(r"AC\d")
# Amino acids with a fourth letter for the protonation state or disulphide in some programs.
_FOUR_LETTER_STEMS = ("HIS", "LYS", "ARG", "ASP", "GLU", "CYS")

Text = NDArray[np.uint8]


class ModelLines:
    """Atom lines of one model, _WIDTH characters each, with line numbers and the positions of chain ends.

    first_of_several : True if another model follows; model : number of the model
    """

    def __init__(self, found: Iterable[PdbRecord] = (), source: str = "") -> None:
        self.texts: list[str] = []
        self.numbers: array[int] = array("l")
        self.ters: list[int] = []
        self.ends: list[int] = []
        self.first_of_several = False
        self.model = 1
        for record in found:
            self.add(record, source)

    def add(self, record: PdbRecord, source: str) -> None:
        """Add an atom or the end of a chain. Raises FormatError for characters that are not allowed."""
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
            f"{where}: contains the character {strange!a} among an atom's columns; only plain text is allowed there"
        )
    return text.encode("ascii", "replace").decode()


def letters(listed: ModelLines) -> Text:
    """Return the lines as a writable array of characters, (n, _WIDTH)."""
    return np.frombuffer("".join(listed.texts).encode("ascii"), np.uint8).reshape(-1, _WIDTH).copy()


def records_of(listed: ModelLines, source: str) -> ListedAtoms:
    """Parse all atom lines. Raises FormatError for ambiguous or unreadable lines."""
    text = letters(listed)
    numbers = np.array(listed.numbers, np.int32)
    positions = positions_of(text, listed, source)
    residue_numbers, insertion_codes = _residue_numbers(text)
    residue_names, chains = _residue_names_and_chains(text)
    pieces, copies = (counted + _segments(text) for counted in _pieces(listed))
    return ListedAtoms(
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


def positions_of(text: Text, listed: ModelLines, source: str) -> Floats:
    """Parse the positions (n, 3) A. Shifted lines are moved to the standard columns, also in `text`."""
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
    """Return a mask (n,) of the lines that certainly have standard columns, with coordinates in the format 8.3f."""
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
    """Return the residue names and chain identifiers.

    Column 21 is the fourth letter of a residue name (GROMACS, CHARMM, VMD) or the first letter of a two-letter chain
    (large structures). The choice for the file depends on the entries that use all five columns: it is a chain if most
    of the known residues among them have three letters.
    """
    distinct = set(_each(text, [_RESIDUE, _CHAIN], str).tolist())
    full = [columns for columns in distinct if len(columns) == 5 and " " not in columns[3:]]
    if sum(map(_votes_for_two_letter_chain, full)) > 0:
        return _each(text, [slice(17, 20)], str.strip), _each(text, [slice(20, 22)], str.strip)
    return _each(text, [_RESIDUE], str.strip), _each(text, [_CHAIN], str.strip)


def _votes_for_two_letter_chain(columns: str) -> int:
    """Return 1 for a known residue of three letters, -1 for one of four (TIP3, NMET), 0 if unclear (HISD)."""
    name = columns[:3].strip()
    if len(columns[:4].strip()) == 4 and (is_polymer(columns[:4]) or is_water(columns[:4])):
        return 0 if columns.startswith(_FOUR_LETTER_STEMS) else -1
    known = is_polymer(name) or is_water(name)
    return int(known and not columns.startswith(_FOUR_LETTER_STEMS))


def _pieces(listed: ModelLines) -> tuple[Ints, Ints]:
    """Return the chain piece of each atom, counted over the whole file and since the last END."""
    n = len(listed.texts)
    atoms = np.arange(n)
    ters, ends = np.array(listed.ters, np.int64), np.array(listed.ends, np.int64)
    after_ter = np.searchsorted(ters, atoms, side="right")
    after_end = np.searchsorted(ends, atoms, side="right")
    ters_at_end = np.concatenate([[0], np.searchsorted(ters, ends, side="right")])
    return (after_ter + after_end).astype(np.int32), (after_ter - ters_at_end[after_end]).astype(np.int32)


def _segments(text: Text) -> Ints:
    """Return the index of the segment of each atom, by the segment names.

    In CHARMM's files only these names distinguish chains with the same letter. All indices are 0 if a name is missing
    or occurs again after another one, or if names are X-PLOR's for alternate locations (AC1, AC2).
    """
    names = _each(text, [_SEGMENT], str.strip)
    runs = np.append(names[:1], names[1:][names[1:] != names[:-1]])
    found = runs.tolist()
    if len(set(found)) < len(found) or "" in found or any(map(_ALTERNATE.fullmatch, found)):
        return np.zeros(len(text), np.int32)
    return np.cumsum(np.append(np.zeros(1, np.bool_), names[1:] != names[:-1])[: len(text)], dtype=np.int32)


def _occupancy(columns: str) -> float:
    """Parse the occupancy; 1 if it is not a number."""
    value = number(columns)
    return 1.0 if value is None else min(max(value, 0.0), 1.0)


def _each(text: Text, columns: list[slice], function: Callable[[str], Any]) -> NDArray[Any]:
    """Apply a function to columns of all lines, once per distinct content."""
    block = np.concatenate([text[:, part] for part in columns], axis=1)
    padded = np.zeros((len(block), -(-block.shape[1] // 8) * 8), np.uint8)
    padded[:, : block.shape[1]] = block
    codes = np.zeros(len(block), np.int64)
    first = np.zeros(1, np.int64)
    for word in padded.view(np.uint64).T:
        words, inverse = np.unique(word, return_inverse=True)
        _, first, codes = np.unique(codes * len(words) + inverse, return_index=True, return_inverse=True)
    return np.array([function(block[i].tobytes().decode("ascii")) for i in first.tolist()])[codes]


def read_pdb(path: str | PathLike[str], model: int | None = None) -> Structure:
    """Read one model of a PDB file.

    Columns that touch or are slightly shifted are accepted if they are unambiguous. Reading continues after END, which
    occurs in the middle of concatenated files; it starts a new segment, like TER.

    model : number in the MODEL record, or counted by ENDMDL; by default the first model with atoms

    Raises FormatError, with the line, for unreadable or duplicate atoms, and for a missing model.
    """
    file = read_file(path)
    listed = _listed(file, model)
    notes = (model_note(str(file), listed.model),) if listed.first_of_several and model is None else ()
    return structure(records_of(listed, str(file)), str(file), notes)


def pdb_models(file: InputFile) -> list[int]:
    """Return the numbers of the models with atoms. Raises FormatError for duplicate numbers, or if there are none."""
    return model_numbers_of(_all_records(file), file) or _none(file)


def read_pdb_conformations(file: InputFile, failed: dict[int, str] | None = None) -> tuple[list[int], Floats]:
    """Read all models as conformations: model numbers, and positions (m, n, 3) A; see read_conformations."""
    source = str(file)
    models = [ModelLines(group, source) for _, group in groupby(_all_records(file), lambda record: record.ordinal)]
    models = [listed for listed in models if listed.texts] or _none(file)
    first, found = first_readable(models, lambda listed: structure(records_of(listed, source), source), failed)
    rank = {line_number: k for k, line_number in enumerate(first.numbers)}
    kept = np.array([rank[line] for line in found.lines.tolist()], np.intp)
    identities = letters(first)[kept, IDENTITY]
    conformations = np.empty((len(models), len(kept), 3))

    def positions_in(listed: ModelLines) -> Floats:
        if len(listed.texts) != len(first.texts):
            raise FormatError(
                f"{source}: model {listed.model} has {len(listed.texts):,} atoms, model {first.model} "
                f"{len(first.texts):,}; expected conformations of one molecule"
            )
        text = letters(listed)
        others = np.flatnonzero((text[kept, IDENTITY] != identities).any(axis=1))
        if len(others):
            k = int(kept[others[0]])
            raise FormatError(
                f"{source}:{listed.numbers[k]}: {listed.texts[k][IDENTITY].strip()!r} is in the position of model "
                f"{first.model}'s {first.texts[k][IDENTITY].strip()!r}; expected conformations of one molecule"
            )
        return positions_of(text, listed, source)[kept]

    fill_readable(conformations, models, positions_in, failed)
    return [listed.model for listed in models], conformations


def _is_atom(line: str) -> bool:
    return line[:6] in ("ATOM  ", "HETATM") or is_atom_line(line)


def _all_records(file: InputFile) -> Iterator[PdbRecord]:
    return records(lines(file, "PDB"), file, _is_atom)


def _none(file: InputFile) -> NoReturn:
    raise FormatError(f"{file}: contains no ATOM or HETATM records; is it a PDB file?")


def _listed(file: InputFile, model: int | None) -> ModelLines:
    """List the atom lines of a model. The rest of the file is not read."""
    listed, chosen, others, source = ModelLines(), -1, dict[int, None](), str(file)
    for record in _all_records(file):
        if record.kind != "ATOM":
            listed.add(record, source)
        elif chosen not in (-1, record.ordinal):
            listed.first_of_several = True
            break
        elif model in (None, record.model):
            chosen = record.ordinal
            listed.add(record, source)
        else:
            others.setdefault(record.model)
    if listed.texts:
        return listed
    if others:
        raise FormatError(f"{file}: has no model {model}; it has {shown_models(others)}")
    _none(file)


def _first_model(file: InputFile) -> gemmi.Structure:
    """Read the first model through gemmi, for occupancies and B-factors."""
    import gemmi

    atoms = (of for of in records(lines(file, "PDB"), file, is_atom_line) if of.kind == "ATOM")
    return gemmi.read_pdb_string("".join(of.line for of in atoms if of.ordinal == 0))


FORMAT = StructureFormat(
    read_pdb,
    pdb_models,
    conformations=read_pdb_conformations,
    has_pdb_records=True,
    cell=pdb_cell,
    first_model=_first_model,
)
