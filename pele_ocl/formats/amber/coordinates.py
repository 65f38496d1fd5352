"""Coordinates of AMBER: restarts as text (inpcrd, rst7) and as NetCDF, and frames of NetCDF trajectories."""

from __future__ import annotations

from os import PathLike

import numpy as np

from ...atoms import Atoms, Floats, Topology
from ...errors import FormatError, InputError
from ...inputfile import InputFile, read_file
from ...textfiles import plain_bytes, quoted
from .fields import Fields
from .netcdf import MAGICS, NetCdf, read_netcdf

_PER_LINE, _WIDTH = 6, 12  # 6F12.7
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HEADS = 2  # a title and the number of atoms


def place(topology: Topology, path: str | PathLike[str], frame: int | None = None) -> Atoms:
    """The atoms of a topology at the coordinates of a file, plain or gzip; its first bytes say which kind it is.

    frame : number from 1 of a frame of a NetCDF trajectory; by default the first, of which a note tells

    Raises FormatError, with the line, where the file cannot be read, has other atoms or no such frame.
    """
    file = read_file(path)
    data = plain_bytes(file)
    if data.startswith(_HDF5):
        raise FormatError(f"{file}: NetCDF of version 4 (HDF5), which is not read; write it anew as version 3")
    if data.startswith(MAGICS):
        positions, notes = _netcdf_positions(topology, file, data, frame)
    else:
        if frame not in (None, 1):
            raise FormatError(f"{file}: holds no frame {frame}; a restart has one")
        positions, notes = _text_positions(topology, file, data), ()
    try:
        return topology.with_positions(positions, notes)
    except InputError as error:
        raise FormatError(f"{file}: {error}") from None


def _text_positions(topology: Topology, file: InputFile, data: bytes) -> Floats:
    """Positions of a restart: a title, the number of atoms, and x, y, z of two atoms a line; the rest is not needed."""
    lines = [line.rstrip() for line in data.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) < _HEADS:
        raise FormatError(f"{file}: ends before the number of atoms, which stands on the second line")
    n_atoms = _number_of_atoms(file, lines[1])
    _refuse_other_number(topology, f"{file}:2", n_atoms)
    n_lines = -(-3 * n_atoms // _PER_LINE)
    text = b"\n".join(lines[_HEADS : _HEADS + n_lines])
    fields = Fields(str(file), "coordinates", text, _HEADS + 1, _PER_LINE, _WIDTH)
    if len(fields) != 3 * n_atoms:
        raise FormatError(
            f"{file}:{min(len(lines), _HEADS + n_lines)}: {len(fields):,} coordinates of {n_atoms:,} atoms, which have "
            f"{3 * n_atoms:,}; is the file complete?"
        )
    behind = len(lines) - _HEADS - n_lines
    if behind not in (0, 1, n_lines, n_lines + 1):
        raise FormatError(
            f"{file}:{_HEADS + n_lines + 1}: {behind:,} lines behind the coordinates; velocities take {n_lines:,}, "
            "a box 1"
        )
    return fields.numbers().reshape(n_atoms, 3)


def _number_of_atoms(file: InputFile, line: bytes) -> int:
    words = line.split()
    if not words or not words[0].isdigit() or len(words[0]) > 9:
        raise FormatError(
            f"{file}:2: {quoted(line.decode('latin-1'))}; a restart (inpcrd, rst7) has the number of atoms here"
        )
    return int(words[0])


def _netcdf_positions(
    topology: Topology, file: InputFile, data: bytes, frame: int | None
) -> tuple[Floats, tuple[str, ...]]:
    """Positions of a frame, and the note that there are others."""
    netcdf = read_netcdf(str(file), data)
    n_frames = _frames(netcdf)
    number = 1 if frame is None else frame
    if not 1 <= number <= n_frames:
        raise FormatError(f"{file}: holds no frame {number}; the frames are 1 to {n_frames:,}")
    variable = netcdf.variables["coordinates"]
    _refuse_other_number(topology, str(file), variable.shape[-2] or 0)
    values = netcdf.values("coordinates", number - 1)
    if not np.isfinite(values).all():
        k = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise FormatError(f"{file}: frame {number}: a coordinate of atom {k + 1} is not a finite number")
    note = f"{file} holds {n_frames:,} frames; the first was read, and --model reads another"
    return values, (note,) * (frame is None and n_frames > 1)


def _frames(netcdf: NetCdf) -> int:
    """The number of frames; raises FormatError where there are no coordinates of atoms in A."""
    variable = netcdf.variables.get("coordinates")
    if variable is None:
        raise FormatError(
            f"{netcdf.where}: holds no variable 'coordinates'; a restart or trajectory of AMBER is needed"
        )
    shape = variable.shape[1:] if variable.is_record else variable.shape
    if len(shape) != 2 or shape[1] != 3 or variable.dtype.kind != "f":
        raise FormatError(f"{netcdf.where}: the coordinates have shape {shape}; (atoms, 3) is needed")
    unit = variable.attributes.get("units", "angstrom").strip("\0 ").lower()
    if unit not in ("angstrom", "angstroms") or "scale_factor" in variable.attributes:
        raise FormatError(f"{netcdf.where}: the coordinates are in {quoted(unit)}; angstrom without a factor is needed")
    return netcdf.n_records if variable.is_record else 1


def _refuse_other_number(topology: Topology, where: str, n_atoms: int) -> None:
    if n_atoms != len(topology):
        raise FormatError(f"{where}: {n_atoms:,} atoms; {topology.source} has {len(topology):,}")
