"""Readers of unit cells: CRYST1 records, mmCIF items, box lines and NetCDF variables."""

from __future__ import annotations

import io
import re
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..common.inputfile import InputFile, open_regular, read_file
from ..common.textfiles import number, plain_bytes
from .registry import is_structure, structure_format

Floats = NDArray[np.float64]

_NM = 10.0  # A
_CIF_NAMES = ("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma")


def read_cell(path: str | PathLike[str], frame: int = 0) -> Floats | None:
    """Read the unit cell (3, 3) A of a coordinate file, one row per vector; None if there is none.

    frame : index of the frame in a NetCDF trajectory, from 0

    Invalid cells are treated as missing.
    """
    if is_structure(path):
        data = plain_bytes(read_file(path))
        cell = structure_format(path).cell
        found = None if cell is None else cell(data)
    else:
        from .amber.netcdf import HDF5, MAGICS, opened_coordinates, read_frames

        with _opened(path) as stream:
            magic = stream.read(len(HDF5))
            if magic == HDF5:
                with opened_coordinates(str(path), stream) as coordinates:
                    cells = coordinates.cells(frame, frame + 1)
                found = None if cells is None else cells[0]
            elif magic.startswith(MAGICS):
                found = read_frames(str(path), stream).cell_of(stream, frame)
            else:
                stream.seek(0)
                found = _restart_cell(stream.read())
    return None if found is None or not np.isfinite(found).all() else found


def cryst1_cell(line: bytes) -> Floats:
    """Read the cell (3, 3) A of a CRYST1 record; NaN if it is invalid."""
    return _of_texts([line[k : k + w] for k, w in ((6, 9), (15, 9), (24, 9), (33, 7), (40, 7), (47, 7))])


def _of_texts(texts: list[bytes]) -> Floats:
    """Create a cell from six texts, lengths in A and angles in degrees; NaN if they are not numbers."""
    values = [number(text.decode("ascii", "replace")) for text in texts]
    if len(values) != 6 or any(value is None for value in values):
        return np.full((3, 3), np.nan)
    six = np.array(values, np.float64)
    from ..contract import cells_of

    found: Floats = cells_of(six[:3], six[3:])[0]
    return found


def pdb_cell(data: bytes) -> Floats | None:
    """Read the cell of the first CRYST1 record."""
    at = 0 if data.startswith(b"CRYST1") else data.find(b"\nCRYST1") + 1
    return cryst1_cell(data[at : at + 80]) if data[at : at + 6] == b"CRYST1" else None


def cif_cell(data: bytes) -> Floats | None:
    """Read the cell of the first data block that has one."""
    if b"_cell." not in data:
        return None
    plain = [
        re.search(rb"^_cell\.%s[ \t]+['\"]?([^\s'\"]+)" % name.encode(), data, re.MULTILINE) for name in _CIF_NAMES
    ]
    if all(plain):
        return _of_texts([of[1] for of in plain if of is not None])
    from gemmi import cif

    try:
        block = cif.read_string(data.decode("latin-1"))[0]
    except (ValueError, RuntimeError, IndexError):
        return None
    texts = [(block.find_value(f"_cell.{name}") or "").strip("'\"").encode() for name in _CIF_NAMES]
    return _of_texts(texts)


def gro_cell(data: bytes) -> Floats | None:
    """Read the box of the first frame: the lengths, optionally followed by the other six components, nm."""
    lines = data.split(b"\n")
    count = number(lines[1].decode("ascii", "replace")) if len(lines) > 1 else None
    if count is None or not 0 < count < len(lines) - 2:
        return None
    values = [number(word.decode("ascii", "replace")) for word in lines[2 + int(count)].split()]
    if len(values) not in (3, 9) or any(value is None for value in values):
        return None
    xx, yy, zz, xy, xz, yx, yz, zx, zy = [*(_NM * value for value in values if value is not None), *[0.0] * 6][:9]
    from ..contract import usable_cells

    found: Floats = usable_cells([[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]])[0]
    return found


def _restart_cell(data: bytes) -> Floats | None:
    """Read the box at the end of an AMBER text restart: lengths and usually angles, 12 characters each."""
    lines = data.rstrip().splitlines()
    words = lines[1].split() if len(lines) > 2 else []
    if not words or not words[0].isdigit():
        return None
    n_lines = -(-int(words[0]) // 2)
    if n_lines < 2 or len(lines) - 2 not in (n_lines + 1, 2 * n_lines + 1):  # of two atoms: may be velocities
        return None
    line = lines[-1].rstrip()
    texts = [line[k : k + 12] for k in range(0, len(line), 12)]
    return _of_texts([*texts, b"90", b"90", b"90"] if len(texts) == 3 else texts)


def _opened(path: str | PathLike[str]) -> BinaryIO:
    from .amber.netcdf import HDF5, MAGICS

    if isinstance(path, InputFile):
        return io.BytesIO(plain_bytes(path))
    file = Path(path)
    with open_regular(file) as stream:
        magic = stream.read(len(HDF5))
    return open(file, "rb") if magic == HDF5 or magic.startswith(MAGICS) else io.BytesIO(plain_bytes(read_file(file)))
