"""PQR files: positions, charges and radii (the format of PDB2PQR and APBS)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple, NoReturn

import numpy as np

from ..atoms import Atoms, Floats, Labels
from ..atoms.radii import hct_scale
from ..chemistry import element, is_polymer, is_water
from ..errors import FormatError
from ..inputfile import InputFile, read_file
from ..textfiles import lines, number, quoted
from .assembly import Records, model_note, shown_models, structure
from .models import Record, model_numbers_of, records
from .registry import StructureFormat

_RECORD = re.compile(r"\s*(ATOM|HETATM)(?![A-Z])", re.IGNORECASE)
# Occupancy, B factor and element of a PDB file.
_PDB_COLUMNS = re.compile(r" *\d\.\d\d *\d+\.\d\d {6,10}[ A-Z]{0,4}[ A-Z][A-Z]([\d ][-+ ])?")
_QUANTITIES = ("x coordinate", "y coordinate", "z coordinate", "charge", "radius")
# Decimal or hybrid-36; asterisks where a program ran out of columns.
_SERIAL = re.compile(r"-?\d+|\*+|[A-Z][0-9A-Z]{4}|[a-z][0-9a-z]{4}", re.ASCII)
_RESIDUE_NUMBER = re.compile(r"([A-Za-z]?)(-?\d{1,9})([A-Za-z]?)")


class _Fields(NamedTuple):
    """The fields of a line as text; numbers: x, y, z, charge, radius."""

    name: str
    residue: str
    chain: str
    residue_number: str
    numbers: list[str]
    element: str = ""


class _Row(NamedTuple):
    fields: _Fields
    residue_number: int
    insertion_code: str
    chain: str
    values: list[float]
    hetero: bool
    piece: int
    line: int


def read_pqr(path: str | PathLike[str], model: int | None = None) -> Atoms:
    """Atoms with the charges and radii of a PQR file.

    Fields are separated by blanks, with or without a chain identifier; coordinates that touch are told apart by their
    sign or by the columns of the PDB format. The radii become gb_radii, unchanged; gb_scales are the HCT overlap
    scales by element: H 0.85, C 0.72, N 0.79, O 0.85, F 0.88, P 0.86, S 0.96, Fe 0.88, all others 0.80. There are no
    Lennard-Jones parameters and no bonds.

    model : number in the MODEL record (or counted by ENDMDL); the first model with atoms if None

    Raises FormatError, naming file and line, for whatever cannot be read, for a missing model, and for PDB files that
    are only called PQR.
    """
    file = read_file(path)
    rows, models = _rows(file, model)
    values = np.array([row.values for row in rows])
    labels = _labels(rows, values[:, :3], str(file))
    return Atoms(
        positions=values[:, :3],
        charges=values[:, 3],
        gb_radii=values[:, 4],
        gb_radii_set="file",
        gb_scales=np.array([hct_scale(symbol) for symbol in labels.elements.tolist()]),
        labels=labels,
        notes=(model_note(str(file), models[0]),) if model is None and len(models) > 1 else (),
    )


def pqr_models(file: InputFile) -> list[int]:
    """Numbers of the models with atoms; raises FormatError for two of one number, or none."""
    return model_numbers_of(_records(file), file) or _none(file)


def _records(file: InputFile) -> Iterator[Record]:
    return records(lines(file, "PQR"), file, lambda line: _RECORD.match(line) is not None)


def _none(file: InputFile) -> NoReturn:
    raise FormatError(f"{file}: holds no ATOM or HETATM records; is it a PQR file?")


def _rows(file: InputFile, model: int | None) -> tuple[list[_Row], list[int]]:
    """The atoms of the model asked for, and the models there are, in their order."""
    rows, models, piece = list[_Row](), dict[int, int](), 0
    chosen, from_pdb = None, True
    for record in _records(file):
        if record.kind == "TER":
            piece += 1
        elif record.kind == "ATOM":
            if record.ordinal not in models:
                models[record.ordinal] = record.model
                chosen = record.ordinal if chosen is None and model in (None, record.model) else chosen
            if record.ordinal == chosen:
                line = record.line.rstrip()
                rows.append(_row(line, record.line_number, piece, f"{file}:{record.line_number}"))
                from_pdb = from_pdb and _PDB_COLUMNS.fullmatch(line[54:].ljust(24)) is not None
    if not models:
        _none(file)
    if not rows:
        raise FormatError(f"{file}: has no model {model}; it has {shown_models(models.values())}")
    if from_pdb or _are_occupancies(rows):
        raise FormatError(
            f"{file}: looks like a PDB file: its charges are occupancies and its radii B factors; rename it to .pdb"
        )
    return rows, list(models.values())


def _are_occupancies(rows: list[_Row]) -> bool:
    """Whether the charges of biomolecules, which have negative ones, are all 0.00 to 1.00."""
    all_positive = all(re.fullmatch(r"0\.\d\d|1\.00", row.fields.numbers[3]) for row in rows)
    return (
        all_positive
        and any(row.values[3] for row in rows)
        and any(is_polymer(row.fields.residue) or is_water(row.fields.residue) for row in rows)
    )


def _labels(rows: list[_Row], positions: Floats, source: str) -> Labels:
    pieces = np.array([row.piece for row in rows], np.int32)
    listed = Records(
        positions=positions,
        names=np.array([row.fields.name for row in rows]),
        elements=np.array([element(row.fields.name, row.fields.residue, row.fields.element) for row in rows]),
        residue_names=np.array([row.fields.residue for row in rows]),
        residue_numbers=np.array([row.residue_number for row in rows], np.int32),
        insertion_codes=np.array([row.insertion_code for row in rows]),
        chains=np.array([row.chain for row in rows]),
        altlocs=np.full(len(rows), ""),
        occupancies=np.ones(len(rows)),
        hetero=np.array([row.hetero for row in rows]),
        pieces=pieces,
        copies=pieces,
        lines=np.array([row.line for row in rows], np.int32),
    )
    return structure(listed, source, names_matter=False).labels


def _row(line: str, line_number: int, piece: int, where: str) -> _Row:
    fields = _by_words(line) or _by_columns(line)
    if fields is None:
        raise FormatError(f"{where}: {_complaint(line)}")
    values = [_value(text, quantity, where) for text, quantity in zip(fields.numbers, _QUANTITIES, strict=True)]
    if values[4] < 0:
        raise FormatError(f"{where}: radius {values[4]:g} is negative; a radius in angstrom is needed")
    found = _RESIDUE_NUMBER.fullmatch(fields.residue_number)
    if found is None:
        raise FormatError(f"{where}: residue number {quoted(fields.residue_number)} is not a number")
    hetero = line.lstrip().upper().startswith("HETATM")
    return _Row(fields, int(found[2]), found[3], fields.chain or found[1], values, hetero, piece, line_number)


def _separated(text: str) -> list[str]:
    """Words, where a minus sign directly behind decimals begins another one."""
    return re.sub(r"(\.\d+)(?=-)", r"\1 ", text).split()


def _by_words(line: str) -> _Fields | None:
    """The fields of a line that has them apart; None where they run together or their number is wrong."""
    serial, *words = _separated(_RECORD.sub("", line)) or [""]
    last = ""
    if len(words) == 10 or (len(words) == 9 and "." in words[3]):
        last = words.pop() if re.fullmatch(r"[A-Za-z]{1,2}", words[-1]) else ""
    # Residue names have up to four letters; a longer word is one that touches the chain.
    if (
        not _SERIAL.fullmatch(serial)
        or len(words) not in (8, 9)
        or len(words[1]) > 4
        or any(word.count(".") > 1 for word in words[-5:])
    ):
        return None
    chain = words[2] if len(words) == 9 else ""
    return _Fields(words[0], words[1], chain, words[-6], words[-5:], last)


def _by_columns(line: str) -> _Fields | None:
    """The fields of a line in the columns of the PDB format, where neighbours may touch."""
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
    return _Fields(name, residue, line[21].strip(), residue_number, numbers)


def _complaint(line: str) -> str:
    serial = next(iter(_RECORD.sub("", line).split()), "")
    if serial and not _SERIAL.fullmatch(serial):
        return f"{quoted(serial)} stands where the serial number of the atom should, behind the record name"
    joined = next((word for word in line.split() if re.fullmatch(r"[-+]?\d*\.\d*\.[\d.]*", word)), None)
    if joined:
        return f"the numbers {quoted(joined)} run together; put blanks between them"
    return (
        f"holds {len(line.split())} fields; a PQR line has record, serial, atom, residue, chain (or none), residue "
        "number, x, y, z, charge and radius"
    )


def _value(text: str, quantity: str, where: str) -> float:
    value = number(text)
    if value is None:
        raise FormatError(f"{where}: {quantity} {quoted(text)} is not a number")
    if not math.isfinite(value):
        raise FormatError(f"{where}: {quantity} {quoted(text)} is not a finite number")
    return value


FORMAT = StructureFormat(
    read_pqr, pqr_models, brings_parameters=True, has_bonds=False, kind="a PQR file", has_lennard_jones=False
)
