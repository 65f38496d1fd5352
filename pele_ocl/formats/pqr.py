"""Reader and writer of PQR files: positions, charges and radii (the format of PDB2PQR and APBS).

Simple lines are parsed together, others one by one with detailed error messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from ..atoms import Atoms, Floats, Labels, require_atoms
from ..atoms.chemistry import element, is_polymer, is_water
from ..atoms.radii import hct_scale
from ..common.arguments import file_path
from ..common.errors import FormatError, ParameterError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, number, quoted
from ..common.writing import replacing
from .assembly import ListedAtoms, model_note, shown_models, structure
from .pdb import PdbRecord, model_numbers_of, records
from .registry import StructureFormat

ATOM_RECORD = re.compile(r"\s*(ATOM|HETATM)(?![A-Z])", re.IGNORECASE)
T = TypeVar("T")

_QUANTITIES = ("x coordinate", "y coordinate", "z coordinate", "charge", "radius")
# Decimal or hybrid-36, or asterisks for numbers that are too wide.
_SERIAL = re.compile(r"-?\d+|\*+|[A-Z][0-9A-Z]{4}|[a-z][0-9a-z]{4}", re.ASCII)
_RESIDUE_NUMBER = re.compile(r"([A-Za-z]?)(-?\d{1,9})([A-Za-z]?)")
_FIELDS = 11  # fields of a line with a chain and without an element
_AT_ONCE = 4096  # lines
_DIGITS = b"0123456789"
# With only these characters, `float` accepts the same texts as `number`.
_OF_NUMBERS = _DIGITS + b"+-.eE"


@dataclass(frozen=True, eq=False)
class PqrFields:
    """Fields of n atoms; insertion codes, chains and elements are "" if missing.

    values : (n, 5) x, y, z [A], charge [e], radius [A]; charges_as_written : text of the charges in the file
    """

    hetero: list[bool]
    names: list[str]
    residues: list[str]
    chains: list[str]
    residue_numbers: list[int]
    insertion_codes: list[str]
    elements: list[str]
    charges_as_written: list[str]
    values: Floats


def fields_of(lines: Sequence[str], place: Callable[[int], str]) -> PqrFields:
    """Parse the fields of lines. place : returns the file and line for an index, for messages

    Lines with fields separated by blanks are parsed together, all others one by one. Raises FormatError for the first
    line that cannot be parsed.
    """
    words, odd = list[str](), list[int]()
    for start in range(0, len(lines), _AT_ONCE):
        rows = [_row(line) for line in lines[start : start + _AT_ONCE]]
        odd += [start + i for i, row in enumerate(rows) if len(row) != _FIELDS]
        words.extend(chain.from_iterable(row for row in rows if len(row) == _FIELDS))
    plain = _plain_fields(words) if words else None
    if plain is None:
        return fields_of_each(lines, map(place, range(len(lines))))
    if not odd:
        return plain
    return _merged(plain, fields_of_each([lines[i] for i in odd], map(place, odd)), odd)


def _row(line: str) -> list[str]:
    """Split a line into words, with "" for a missing chain."""
    words = line.split()
    if len(words) not in (_FIELDS - 1, _FIELDS):
        words = _separated(line)
    if len(words) == _FIELDS - 1:
        words.insert(4, "")
    return words


def _plain_fields(words: list[str]) -> PqrFields | None:
    """Parse the fields of lines from their words; None if any of them are ambiguous.

    The results are those of `fields_of_each`.
    """
    records, serials, names, residues, chains, residue_numbers, *written = (words[k::_FIELDS] for k in range(_FIELDS))
    numbers = {word: _RESIDUE_NUMBER.fullmatch(word) for word in set(residue_numbers)}
    labels = {*names, *residues, *chains}
    if (
        not {*records} <= {"ATOM", "HETATM"}
        or not _holds_only(_DIGITS, serials)
        or max(map(len, residues)) > 4
        or any("." in label or "ATOM" in label.upper() for label in labels)
        or not all(_holds_only(_OF_NUMBERS, column) for column in written)
        or not all(numbers.values())
    ):
        return None
    try:
        values = np.array([[float(word) for word in column] for column in written]).T
    except ValueError:
        return None
    if not np.isfinite(values).all() or values[:, 4].min() < 0:
        return None
    found = [numbers[word] for word in residue_numbers]
    return PqrFields(
        hetero=[record == "HETATM" for record in records],
        names=names,
        residues=residues,
        chains=[given or number[1] for given, number in zip(chains, found, strict=True) if number],
        residue_numbers=[int(number[2]) for number in found if number],
        insertion_codes=[number[3] for number in found if number],
        elements=[""] * len(records),
        values=values,
        charges_as_written=written[3],
    )


def _holds_only(letters: bytes, words: Iterable[str]) -> bool:
    return not "".join(words).encode("utf-8", "surrogatepass").translate(None, letters)


def _merged(plain: PqrFields, others: PqrFields, at: Sequence[int]) -> PqrFields:
    """Merge fields in the order of the file. at : indices of `others` in the file"""
    n_plain, is_plain = len(plain.names), np.ones(len(plain.names) + len(at), np.bool_)
    is_plain[list(at)] = False
    places = np.where(is_plain, np.cumsum(is_plain) - 1, n_plain + np.cumsum(~is_plain) - 1)
    order: list[int] = places.tolist()

    def both(first: list[T], second: list[T]) -> list[T]:
        values = [*first, *second]
        return [values[i] for i in order]

    return PqrFields(
        hetero=both(plain.hetero, others.hetero),
        names=both(plain.names, others.names),
        residues=both(plain.residues, others.residues),
        chains=both(plain.chains, others.chains),
        residue_numbers=both(plain.residue_numbers, others.residue_numbers),
        insertion_codes=both(plain.insertion_codes, others.insertion_codes),
        elements=both(plain.elements, others.elements),
        charges_as_written=both(plain.charges_as_written, others.charges_as_written),
        values=np.concatenate([plain.values, others.values])[order],
    )


class _Words(NamedTuple):
    """Fields of a line as text. numbers : x, y, z, charge, radius"""

    name: str
    residue: str
    chain: str
    residue_number: str
    numbers: list[str]
    element: str = ""


def fields_of_each(lines: Sequence[str], places: Iterable[str]) -> PqrFields:
    """Parse the fields of lines one by one. places : file and line of each, for messages

    Raises FormatError for a line that cannot be parsed.
    """
    words, values, numbers = list[_Words](), list[list[float]](), list[re.Match[str]]()
    for line, where in zip(lines, places, strict=True):
        found = _by_words(line) or _by_columns(line)
        if found is None:
            raise FormatError(f"{where}: {_complaint(line)}")
        words.append(found)
        values.append([_value(text, what, where) for text, what in zip(found.numbers, _QUANTITIES, strict=True)])
        if values[-1][4] < 0:
            raise FormatError(f"{where}: radius {values[-1][4]:g} is negative; expected a radius in angstrom")
        numbers.append(_residue_number(found.residue_number, where))
    return PqrFields(
        hetero=[line.lstrip().upper().startswith("HETATM") for line in lines],
        names=[each.name for each in words],
        residues=[each.residue for each in words],
        chains=[each.chain or number[1] for each, number in zip(words, numbers, strict=True)],
        residue_numbers=[int(number[2]) for number in numbers],
        insertion_codes=[number[3] for number in numbers],
        elements=[each.element for each in words],
        values=np.array(values),
        charges_as_written=[each.numbers[3] for each in words],
    )


def _residue_number(text: str, where: str) -> re.Match[str]:
    found = _RESIDUE_NUMBER.fullmatch(text)
    if found is None:
        raise FormatError(f"{where}: residue number {quoted(text)} is not a number")
    return found


def _separated(text: str) -> list[str]:
    """Split a text into words; a minus sign directly after decimals begins a new word."""
    return re.sub(r"(\.\d+)(?=-)", r"\1 ", text).split()


def _by_words(line: str) -> _Words | None:
    """Parse a line with separated fields; None if fields are not separated or their number is wrong."""
    serial, *words = _separated(ATOM_RECORD.sub("", line)) or [""]
    words = _with_insertion_code(words)
    last = ""
    if len(words) == 10 or (len(words) == 9 and "." in words[3]):
        last = words.pop() if re.fullmatch(r"[A-Za-z]{1,2}", words[-1]) else ""
    # Residue names have up to four letters; a longer word includes the chain.
    if (
        not _SERIAL.fullmatch(serial)
        or len(words) not in (8, 9)
        or len(words[1]) > 4
        or any(word.count(".") > 1 for word in words[-5:])
    ):
        return None
    chain = words[2] if len(words) == 9 else ""
    return _Words(words[0], words[1], chain, words[-6], words[-5:], last)


def _with_insertion_code(words: list[str]) -> list[str]:
    """Join a residue number and a separate insertion code."""
    place = len(words) - 6
    if place > 2 and re.fullmatch(r"[A-Za-z]", words[place]) and re.fullmatch(r"-?\d+", words[place - 1]):
        return [*words[: place - 1], words[place - 1] + words[place], *words[place + 1 :]]
    return words


def _by_columns(line: str) -> _Words | None:
    """Parse a line with the columns of the PDB format, where fields may touch."""
    numbers = [line[30:38].strip(), line[38:46].strip(), line[46:54].strip(), *_separated(line[54:])[:2]]
    name, residue, residue_number = line[12:16].strip(), line[17:21].strip(), line[22:27].strip()
    apart = all(re.fullmatch(r"[-+]?\d+\.\d+", number) for number in numbers)
    if (
        not _SERIAL.fullmatch(line[6:12].strip())
        or not apart
        or len(numbers) < 5
        or not name
        or not residue
        or line[27:30].strip()
    ):
        return None
    return _Words(name, residue, line[21].strip(), residue_number, numbers)


def _complaint(line: str) -> str:
    serial = next(iter(ATOM_RECORD.sub("", line).split()), "")
    if serial and not _SERIAL.fullmatch(serial):
        return f"expected the serial number of the atom after the record name, not {quoted(serial)}"
    joined = next((word for word in line.split() if re.fullmatch(r"[-+]?\d*\.\d*\.[\d.]*", word)), None)
    if joined:
        return f"the numbers {quoted(joined)} are not separated; put blanks between them"
    return (
        f"contains {len(line.split())} fields; a PQR line has record, serial, atom, residue, chain (or none), residue "
        "number, x, y, z, charge and radius"
    )


def _value(text: str, quantity: str, where: str) -> float:
    value = number(text)
    if value is None:
        raise FormatError(f"{where}: {quantity} {quoted(text)} is not a number")
    if not math.isfinite(value):
        raise FormatError(f"{where}: {quantity} {quoted(text)} is not a finite number")
    return value


# Occupancy, B-factor and element of a PDB file.
_PDB_COLUMNS = re.compile(r" *\d\.\d\d *\d+\.\d\d {6,10}[ A-Z]{0,4}[ A-Z][A-Z]([\d ][-+ ])?")


@dataclass
class _Listed:
    """Atom lines of one model, with line numbers and chain pieces."""

    texts: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)


def read_pqr(path: str | PathLike[str], model: int | None = None) -> Atoms:
    """Read the atoms of a PQR file with charges and radii.

    Fields are separated by blanks; the chain identifier is optional. Coordinates without blanks between them are
    separated by their sign or by the columns of the PDB format. The radii are used as gb_radii without changes. The HCT
    scale factors, gb_scales, depend on the element: H 0.85, C 0.72, N 0.79, O 0.85, F 0.88, P 0.86, S 0.96, Fe 0.88,
    others 0.80. There are no Lennard-Jones parameters and no bonds.

    model : number in the MODEL record, or counted by ENDMDL; by default the first model with atoms

    Raises FormatError, with file and line, for files that cannot be read, a missing model, and PDB files with the
    suffix .pqr.
    """
    file = read_file(path)
    listed, models = _listed(file, model)
    fields = fields_of(listed.texts, lambda i: f"{file}:{listed.numbers[i]}")
    _refuse_pdb(file, listed, fields)
    labels = _labels(listed, fields, str(file))
    scales = {symbol: hct_scale(symbol) for symbol in set(labels.elements.tolist())}
    return Atoms(
        positions=fields.values[:, :3],
        charges=fields.values[:, 3],
        gb_radii=fields.values[:, 4],
        gb_radii_set="file",
        gb_scales=np.array([scales[symbol] for symbol in labels.elements.tolist()]),
        labels=labels,
        notes=(model_note(str(file), models[0]),) if model is None and len(models) > 1 else (),
    )


def pqr_models(file: InputFile) -> list[int]:
    """Return the numbers of the models with atoms. Raises FormatError for duplicate numbers, or if there are none."""
    return model_numbers_of(_records(file), file) or _none(file)


def _records(file: InputFile) -> Iterator[PdbRecord]:
    return records(lines(file, "PQR"), file, lambda line: ATOM_RECORD.match(line) is not None)


def _none(file: InputFile) -> NoReturn:
    raise FormatError(f"{file}: contains no ATOM or HETATM records; is it a PQR file?")


def _listed(file: InputFile, model: int | None) -> tuple[_Listed, list[int]]:
    """List the atoms of a model, and the numbers of all models in order."""
    listed, models, piece, chosen = _Listed(), dict[int, int](), 0, None
    for record in _records(file):
        if record.kind == "TER":
            piece += 1
        elif record.kind == "ATOM":
            if record.ordinal not in models:
                models[record.ordinal] = record.model
                chosen = record.ordinal if chosen is None and model in (None, record.model) else chosen
            if record.ordinal == chosen:
                listed.texts.append(record.line.rstrip())
                listed.numbers.append(record.line_number)
                listed.pieces.append(piece)
    if not models:
        _none(file)
    if not listed.texts:
        raise FormatError(f"{file}: has no model {model}; it has {shown_models(models.values())}")
    return listed, list(models.values())


def _refuse_pdb(file: InputFile, listed: _Listed, fields: PqrFields) -> None:
    """Raise FormatError for a PDB file with the suffix .pqr."""
    in_columns = all(_PDB_COLUMNS.fullmatch(line[54:].ljust(24)) for line in listed.texts)
    if in_columns or _are_occupancies(fields):
        raise FormatError(
            f"{file}: looks like a PDB file: its charges are occupancies and its radii B factors; rename it to .pdb"
        )


def _are_occupancies(fields: PqrFields) -> bool:
    """Return whether the charges of a biomolecule or water look like occupancies: all from 0.00 to 1.00."""
    all_positive = all(re.fullmatch(r"0\.\d\d|1\.00", text) for text in fields.charges_as_written)
    return (
        all_positive
        and bool(fields.values[:, 3].any())
        and any(is_polymer(residue) or is_water(residue) for residue in set(fields.residues))
    )


def _labels(listed: _Listed, fields: PqrFields, source: str) -> Labels:
    n, pieces = len(listed.texts), np.array(listed.pieces, np.int32)
    kinds = list(zip(fields.names, fields.residues, fields.elements, strict=True))
    elements = {kind: element(*kind) for kind in set(kinds)}
    found = ListedAtoms(
        positions=fields.values[:, :3],
        names=np.array(fields.names),
        elements=np.array([elements[kind] for kind in kinds]),
        residue_names=np.array(fields.residues),
        residue_numbers=np.array(fields.residue_numbers, np.int32),
        insertion_codes=np.array(fields.insertion_codes),
        chains=np.array(fields.chains),
        altlocs=np.full(n, ""),
        occupancies=np.ones(n),
        hetero=np.array(fields.hetero),
        pieces=pieces,
        copies=pieces,
        lines=np.array(listed.numbers, np.int32),
    )
    return structure(found, source, names_matter=False).labels


def write_pqr(path: str | PathLike[str], atoms: Atoms) -> None:
    """Write a PQR file with the charges, and gb_radii as radii. Fields are always separated by blanks.

    Raises ParameterError for atoms without radii. Raises FormatError for atoms without labels, for names with blanks,
    and if the file cannot be written.
    """
    require_atoms(atoms)
    target = file_path(path)
    if atoms.gb_radii is None:
        raise ParameterError(f"{target}: the atoms have no radii, which a PQR file needs; choose a set of radii")
    if atoms.labels is None:
        raise FormatError(f"{target}: the atoms have no names, which a PQR file needs")
    written = list(_written_lines(target, atoms))
    with replacing(target) as temporary:
        temporary.write_text("".join(written), encoding="utf-8")


def _written_lines(path: PathLike[str], atoms: Atoms) -> Iterator[str]:
    labels, radii = atoms.labels, atoms.gb_radii
    assert labels is not None
    assert radii is not None
    columns = zip(
        labels.names.tolist(), labels.residue_names.tolist(), labels.chains.tolist(), labels.residue_numbers.tolist(),
        labels.insertion_codes.tolist(), atoms.positions.tolist(), atoms.charges.tolist(), radii.tolist(),
        strict=True,
    )  # fmt: skip
    for serial, (name, residue, chain_name, residue_number, code, (x, y, z), charge, radius) in enumerate(columns, 1):
        if not name or not residue or any(len(word.split()) > 1 for word in (name, residue, chain_name)):
            raise FormatError(f"{path}: {atoms.describe(serial - 1)} has a name that is empty or contains blanks")
        where = f"{chain_name} {residue_number}{code}".lstrip()
        yield (
            f"ATOM  {serial:>5} {name:<4} {residue:<4} {where:>6} {x:10.4f} {y:10.4f} {z:10.4f} {charge:10.6f} "
            f"{radius:8.4f}\n"
        )


FORMAT = StructureFormat(
    read_pqr, pqr_models, brings_parameters=True, has_bonds=False, kind="a PQR file", has_lennard_jones=False
)


__all__ = ["FORMAT", "pqr_models", "read_pqr", "write_pqr"]
