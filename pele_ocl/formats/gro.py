"""Reader of GROMACS GRO files: labels and positions in nm, in fixed columns (GROMACS manual, section "gro")."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from typing import NamedTuple

import numpy as np

from ..atoms import Structure
from ..atoms.chemistry import element
from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, number, quoted
from .assembly import ListedAtoms, model_note, shown_models, structure
from .cells import gro_cell
from .registry import StructureFormat

_A_PER_NM = 10.0
_NAMES_END = 20  # after residue number, residue name, atom name and atom number, five columns each


class _Frame(NamedTuple):
    """Atom lines of one frame, and the line number of the first."""

    atoms: list[str]
    first: int


def read_gro(path: str | PathLike[str], model: int | None = None) -> Structure:
    """Read one frame of a GRO file, without velocities and box.

    model : number of the frame, from 1; by default the first

    GRO files contain no chain identifiers. Raises FormatError, with the line, if the file cannot be read.
    """
    file = read_file(path)
    frames = _frames(file)
    if model is not None and not 1 <= model <= len(frames):
        raise FormatError(f"{file}: has no model {model}; it has {shown_models(range(1, len(frames) + 1))}")
    frame = frames[(model or 1) - 1]
    names = [(line[10:15].strip(), line[5:10].strip()) for line in frame.atoms]
    n = len(names)
    blank, zeros = np.full(n, ""), np.zeros(n, np.int32)
    records = ListedAtoms(
        positions=np.array([_position(line, frame.first + k, file) for k, line in enumerate(frame.atoms)]),
        names=np.array([name for name, _ in names], np.str_),
        elements=np.array([element(name, residue) for name, residue in names], np.str_),
        residue_names=np.array([residue for _, residue in names], np.str_),
        residue_numbers=np.array(
            [_whole(line[:5], frame.first + k, file) for k, line in enumerate(frame.atoms)], np.int32
        ),
        insertion_codes=blank,
        chains=blank,
        altlocs=blank,
        occupancies=np.ones(n),
        hetero=np.zeros(n, np.bool_),
        pieces=zeros,
        copies=zeros,
        lines=np.arange(frame.first, frame.first + n, dtype=np.int32),
    )
    notes = (model_note(str(file), 1),) if model is None and len(frames) > 1 else ()
    return structure(records, str(file), notes, names_matter=False)


def gro_models(file: InputFile) -> list[int]:
    """Return the numbers of the frames, from 1."""
    return list(range(1, len(_frames(file)) + 1))


def _frames(file: InputFile) -> list[_Frame]:
    return list(_each_frame(file))


def _each_frame(file: InputFile) -> Iterator[_Frame]:
    """Yield the frames, each with a title, the number of atoms, the atom lines and the box."""
    stream, first = lines(file, "GRO"), 1
    while (title := next(stream, None)) is not None:
        if not title.strip() and first > 1:
            continue
        n_atoms = _whole(next(stream, ""), first + 1, file)
        atoms = [line.rstrip("\r\n") for line in islice(stream, n_atoms)]
        if len(atoms) < n_atoms or n_atoms < 1:
            raise FormatError(f"{file}:{first + 1}: announces {n_atoms:,} atoms, but {len(atoms):,} follow")
        if next(stream, None) is None:
            raise FormatError(f"{file}: ends before the box line; the file is truncated")
        yield _Frame(atoms, first + 2)
        first += n_atoms + 3


def _position(line: str, line_number: int, file: InputFile) -> list[float]:
    """Parse x, y and z in A. The column width is the distance between the decimal points."""
    text = line[_NAMES_END:]
    first = text.find(".")
    width = text.find(".", first + 1) - first
    values = [number(text[k * width : (k + 1) * width]) for k in range(3)] if first >= 0 and width > 1 else [None]
    if any(value is None or not math.isfinite(value) for value in values):
        raise FormatError(
            f"{file}:{line_number}: {quoted(text.strip())} contains no x, y and z in columns of one width"
        )
    return [_A_PER_NM * value for value in values if value is not None]


def _whole(text: str, line_number: int, file: InputFile) -> int:
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"{file}:{line_number}: {quoted(text.strip())} is not a whole number") from None


FORMAT = StructureFormat(read_gro, gro_models, cell=gro_cell)
