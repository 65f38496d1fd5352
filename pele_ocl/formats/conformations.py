"""All models of a PDB file as conformations of one molecule."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np

from ..arguments import file_path
from ..atoms import Floats
from ..errors import FormatError
from ..textfiles import lines
from .pdb import read_pdb
from .pdb_lines import is_atom_line, repaired

_IDENTITY = slice(12, 27)  # names of atom, residue and chain, and the residue's number
_POSITION = slice(30, 54)


def read_conformations(path: str | PathLike[str]) -> tuple[list[int], Floats]:
    """Numbers of the models of a PDB file, plain or gzip, and the positions of their atoms, (m, n, 3) A.

    The atoms are those that reading the first model gives, in their order; of alternate locations it decides which.

    Raises FormatError, with the line, where a model has other atoms than the first, and for other formats.
    """
    file = file_path(path)
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    if suffixes[-1:] not in ([".pdb"], [".ent"]):
        raise FormatError(f"{file}: models are read together from PDB files alone, .pdb or .ent; choose one by --model")
    models = list(_models(file))
    first = models[0][1]
    rank = {line_number: k for k, (line_number, _) in enumerate(first)}
    kept = [rank[int(line_number)] for line_number in read_pdb(file, models[0][0]).lines]
    identities = [first[k][1][_IDENTITY] for k in kept]
    conformations = np.empty((len(models), len(kept), 3))
    for positions, (number, atoms) in zip(conformations, models, strict=True):
        if len(atoms) != len(first):
            raise FormatError(
                f"{file}: model {number} has {len(atoms):,} atoms, model {models[0][0]} {len(first):,}; conformations "
                "of one molecule are needed"
            )
        for row, k in enumerate(kept):
            line_number, text = atoms[k]
            if text[_IDENTITY] != identities[row]:
                raise FormatError(
                    f"{file}:{line_number}: {text[_IDENTITY].strip()!r} stands where model {models[0][0]} has "
                    f"{identities[row].strip()!r}; conformations of one molecule are needed"
                )
            positions[row] = _position(text, f"{file}:{line_number}")
    return [number for number, _ in models], conformations


def _models(file: Path) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Number of each model that has atoms, with the atoms' lines and their numbers."""
    atoms, number, count = list[tuple[int, str]](), 1, 1
    for line_number, line in enumerate(lines(file, "PDB"), 1):
        record = line[:6]
        if record in ("ATOM  ", "HETATM") or is_atom_line(line):
            atoms.append((line_number, line.rstrip().expandtabs(1)))
        elif record in ("MODEL ", "ENDMDL"):
            if atoms:
                yield number, atoms
                count += 1
            words = line.split()
            atoms = []
            number = int(words[1]) if record == "MODEL " and len(words) > 1 and words[1].isdecimal() else count
    if atoms:
        yield number, atoms
    elif count == 1:
        raise FormatError(f"{file}: holds no ATOM or HETATM records; is it a PDB file?")


def _position(text: str, where: str) -> tuple[float, float, float]:
    columns = text[_POSITION]
    try:
        if text[34:35] == text[42:43] == text[50:51] == ".":
            return float(columns[:8]), float(columns[8:16]), float(columns[16:])
    except ValueError:
        pass
    return repaired(text, where)[1]
