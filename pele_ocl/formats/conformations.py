"""All models of a file as conformations of one molecule, and the numbers of models."""

from __future__ import annotations

from os import PathLike

from ..arguments import file_path
from ..atoms import Floats
from ..errors import FormatError
from ..inputfile import read_file
from .registry import STRUCTURES, structure_format, structure_suffix


def read_conformations(path: str | PathLike[str]) -> tuple[list[int], Floats]:
    """Numbers of the models of a PDB file, plain or gzip, and the positions of their atoms, (m, n, 3) A.

    The atoms are those that reading the first model gives, in their order; of alternate locations it decides which.

    Raises FormatError, with the line, where a model has other atoms than the first, and for other formats.
    """
    file_path(path)  # checks it
    read = structure_format(path).conformations if structure_suffix(path) in STRUCTURES else None
    if read is None:
        raise FormatError(f"{path}: models are read together from PDB and mmCIF files; choose one by --model")
    return read(read_file(path))


def model_numbers(path: str | PathLike[str]) -> list[int]:
    """Numbers of the models with atoms in a PDB, mmCIF or PQR file, in their order, as the readers take them.

    Raises FormatError where the file cannot be read, and where two models have one number.
    """
    return structure_format(file_path(path)).models(read_file(path))
