"""Which models a structure file holds."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from ..textfiles import lines
from .mmcif import mmcif_models


def model_numbers(path: str | PathLike[str]) -> list[int]:
    """Numbers of the models with atoms in a PDB, mmCIF or PQR file, in their order, as the readers take them.

    Raises FormatError where the file cannot be read.
    """
    file = Path(path)
    if file.name.lower().removesuffix(".gz").endswith((".cif", ".mmcif")):
        return mmcif_models(file)
    return _numbers(lines(file, "PQR" if ".pqr" in file.name.lower() else "PDB"))


def _numbers(stream: Iterable[str]) -> list[int]:
    """Of the MODEL records, or counted by ENDMDL where there are none."""
    found, current, closed = dict[int, None](), 1, False
    for line in stream:
        if line.startswith(("ATOM", "HETATM")):
            current, closed = current + closed, False
            found.setdefault(current)
        elif line.startswith("MODEL "):
            words = line.split()
            current = int(words[1]) if len(words) > 1 and words[1].isdecimal() else len(found) + 1
            closed = False
        elif line.startswith("ENDMDL"):
            closed = True
    return list(found)
