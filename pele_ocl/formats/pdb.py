"""PDB files (wwPDB format 3.3, section 9) as programs really write them.

The columns are read here, all atoms at once, and not through gemmi's PDB reader, for what a force field needs and a
lenient reader cannot give: gemmi takes ``1.0x0`` for 1.0, joins residues that are apart in the file and so reorders
atoms, stops at the first END, and forgets line numbers. Having to find and check every column first, nothing would be
left for it to do. Elements and residue kinds are gemmi's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from os import PathLike
from typing import NoReturn

import numpy as np

from ..atoms import Floats, Structure
from ..errors import FormatError
from ..inputfile import InputFile, read_file
from ..textfiles import lines
from .assembly import model_note, shown_models, structure
from .models import Record, model_numbers_of, records
from .pdb_columns import IDENTITY, Listed, letters, positions_of, records_of
from .pdb_lines import is_atom_line
from .registry import StructureFormat


def read_pdb(path: str | PathLike[str], model: int | None = None) -> Structure:
    """The atoms of one model of a PDB file, in the order of the file.

    Columns that touch or are a little off are read where that is possible in one way only. END does not end the
    reading, as files pasted together have one in the middle; it starts a new segment, as TER does.

    model : number in the MODEL record (or counted by ENDMDL); the first model with atoms if None

    Raises FormatError, with the line, for atoms that cannot be read or are there twice, and for a missing model.
    """
    file = read_file(path)
    listed = _listed(file, model)
    notes = (model_note(str(file), listed.model),) if listed.first_of_several and model is None else ()
    return structure(records_of(listed, str(file)), str(file), notes)


def pdb_models(file: InputFile) -> list[int]:
    """Numbers of the models with atoms; raises FormatError for two of one number, or none."""
    return model_numbers_of(_all_records(file), file) or _none(file)


def read_pdb_conformations(file: InputFile) -> tuple[list[int], Floats]:
    """All models as conformations of one molecule: numbers, and positions (m, n, 3) A; read_conformations."""
    source = str(file)
    models = [Listed(group, source) for _, group in groupby(_all_records(file), lambda record: record.ordinal)]
    models = [listed for listed in models if listed.texts] or _none(file)
    first = models[0]
    rank = {line_number: k for k, line_number in enumerate(first.numbers)}
    kept = np.array([rank[line] for line in structure(records_of(first, source), source).lines.tolist()], np.intp)
    identities = letters(first)[kept, IDENTITY]
    conformations = np.empty((len(models), len(kept), 3))
    for positions, listed in zip(conformations, models, strict=True):
        if len(listed.texts) != len(first.texts):
            raise FormatError(
                f"{source}: model {listed.model} has {len(listed.texts):,} atoms, model {first.model} "
                f"{len(first.texts):,}; conformations of one molecule are needed"
            )
        text = letters(listed)
        positions[:] = positions_of(text, listed, source)[kept]
        others = np.flatnonzero((text[kept, IDENTITY] != identities).any(axis=1))
        if len(others):
            k = int(kept[others[0]])
            raise FormatError(
                f"{source}:{listed.numbers[k]}: {listed.texts[k][IDENTITY].strip()!r} stands where model "
                f"{first.model} has {first.texts[k][IDENTITY].strip()!r}; conformations of one molecule are needed"
            )
    return [listed.model for listed in models], conformations


def _is_atom(line: str) -> bool:
    return line[:6] in ("ATOM  ", "HETATM") or is_atom_line(line)


def _all_records(file: InputFile) -> Iterator[Record]:
    return records(lines(file, "PDB"), file, _is_atom)


def _none(file: InputFile) -> NoReturn:
    raise FormatError(f"{file}: holds no ATOM or HETATM records; is it a PDB file?")


def _listed(file: InputFile, model: int | None) -> Listed:
    """The atom lines of the model asked for; the rest of the file is not read."""
    listed, chosen, others, source = Listed(), -1, dict[int, None](), str(file)
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


FORMAT = StructureFormat(read_pdb, pdb_models, conformations=read_pdb_conformations, has_pdb_records=True)
