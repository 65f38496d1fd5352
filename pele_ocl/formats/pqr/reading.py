"""Reading of PQR files: models, molecules, and PDB files that are only called so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import NoReturn

import numpy as np

from ...atoms import Atoms, Labels
from ...atoms.radii import hct_scale
from ...chemistry import element, is_polymer, is_water
from ...errors import FormatError
from ...inputfile import InputFile, read_file
from ...textfiles import lines
from ..assembly import Records, model_note, shown_models, structure
from ..models import Record, model_numbers_of, records
from ..registry import StructureFormat
from .lines import ATOM_RECORD, Fields, fields_of

# Occupancy, B factor and element of a PDB file.
_PDB_COLUMNS = re.compile(r" *\d\.\d\d *\d+\.\d\d {6,10}[ A-Z]{0,4}[ A-Z][A-Z]([\d ][-+ ])?")


@dataclass
class _Listed:
    """The lines of the atoms of one model, their numbers in the file, and the piece of a chain that each is of."""

    texts: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)


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
    """Numbers of the models with atoms; raises FormatError for two of one number, or none."""
    return model_numbers_of(_records(file), file) or _none(file)


def _records(file: InputFile) -> Iterator[Record]:
    return records(lines(file, "PQR"), file, lambda line: ATOM_RECORD.match(line) is not None)


def _none(file: InputFile) -> NoReturn:
    raise FormatError(f"{file}: holds no ATOM or HETATM records; is it a PQR file?")


def _listed(file: InputFile, model: int | None) -> tuple[_Listed, list[int]]:
    """The atoms of the model asked for, and the models there are, in their order."""
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


def _refuse_pdb(file: InputFile, listed: _Listed, fields: Fields) -> None:
    """Raise FormatError for a PDB file that is only called PQR."""
    in_columns = all(_PDB_COLUMNS.fullmatch(line[54:].ljust(24)) for line in listed.texts)
    if in_columns or _are_occupancies(fields):
        raise FormatError(
            f"{file}: looks like a PDB file: its charges are occupancies and its radii B factors; rename it to .pdb"
        )


def _are_occupancies(fields: Fields) -> bool:
    """Whether the charges of biomolecules, which have negative ones, are all 0.00 to 1.00."""
    all_positive = all(re.fullmatch(r"0\.\d\d|1\.00", text) for text in fields.charges_as_written)
    return (
        all_positive
        and bool(fields.values[:, 3].any())
        and any(is_polymer(residue) or is_water(residue) for residue in set(fields.residues))
    )


def _labels(listed: _Listed, fields: Fields, source: str) -> Labels:
    n, pieces = len(listed.texts), np.array(listed.pieces, np.int32)
    kinds = list(zip(fields.names, fields.residues, fields.elements, strict=True))
    elements = {kind: element(*kind) for kind in set(kinds)}
    found = Records(
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


FORMAT = StructureFormat(
    read_pqr, pqr_models, brings_parameters=True, has_bonds=False, kind="a PQR file", has_lennard_jones=False
)
