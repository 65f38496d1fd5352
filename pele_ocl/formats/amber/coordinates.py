"""AMBER coordinates: text restarts (inpcrd, rst7), NetCDF restarts, and frames of NetCDF trajectories."""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats, Topology, correspondence
from ...common.arguments import file_path
from ...common.errors import FormatError, InputError
from ...common.inputfile import InputFile, open_regular, read_file
from ...common.textfiles import plain_bytes, quoted
from .netcdf import HDF5, MAGICS, opened_coordinates, read_frames
from .sections import Fields

_PER_LINE, _WIDTH = 6, 12  # 6F12.7
_HEADS = 2  # a title and the number of atoms


def place(topology: Topology, path: str | PathLike[str], frame: int | None = None) -> Atoms:
    """Read coordinates for a topology from a file, plain or gzip. The format is detected from the first bytes.

    frame : number of the frame in a NetCDF trajectory, from 1; by default the first, with a note if there are several

    Raises FormatError, with the line, if the file cannot be read, has other atoms, or does not have the frame.
    """
    file = file_path(path, "coordinates") if is_netcdf(path) else read_file(path)
    with _opened(file) as stream:
        magic = stream.read(len(HDF5))
        if magic == HDF5:
            try:
                positions, notes = _netcdf4_positions(topology, str(file), stream, frame)
            except InputError as error:
                raise FormatError(str(error)) from None
        elif magic.startswith(MAGICS):
            positions, notes = _netcdf_positions(topology, str(file), stream, frame)
        else:
            if frame not in (None, 1):
                raise FormatError(f"{file}: contains no frame {frame}; a restart has one")
            stream.seek(0)
            positions, notes = _text_positions(file, stream.read(), topology), ()
    try:
        return topology.with_positions(positions, notes)
    except InputError as error:
        raise FormatError(f"{file}: {error}") from None


def is_netcdf(path: str | PathLike[str]) -> bool:
    """Return whether the file at a path is NetCDF; False for an InputFile."""
    try:
        with open_regular("" if isinstance(path, InputFile) else path) as stream:
            return stream.read(len(HDF5)).startswith((HDF5, *MAGICS))
    except (OSError, TypeError, ValueError):
        return False


def _opened(file: InputFile | Path) -> BinaryIO:
    """Open a path, or the uncompressed content of an InputFile."""
    return io.BytesIO(plain_bytes(file)) if isinstance(file, InputFile) else open(file, "rb")


def restart_positions(path: Path) -> Floats:
    """Read the positions (n, 3) A of a text restart. Raises FormatError, with the line, if it is damaged."""
    file = read_file(path)
    return _text_positions(file, plain_bytes(file))


def _text_positions(file: InputFile | Path, data: bytes, topology: Topology | None = None) -> Floats:
    """Read the positions of a text restart: title, number of atoms, then x, y, z of two atoms per line.

    Velocities and box are ignored.
    """
    lines = [line.rstrip() for line in data.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) < _HEADS:
        raise FormatError(f"{file}: ends before the number of atoms, which is on the second line")
    n_atoms = _number_of_atoms(file, lines[1])
    if topology is not None:
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
            f"{file}:{_HEADS + n_lines + 1}: {behind:,} lines after the coordinates; velocities take {n_lines:,}, "
            "a box 1"
        )
    return fields.numbers().reshape(n_atoms, 3)


def _number_of_atoms(file: InputFile | Path, line: bytes) -> int:
    words = line.split()
    if not words or not words[0].isdigit() or len(words[0]) > 9:
        raise FormatError(
            f"{file}:2: {quoted(line.decode('latin-1'))}; a restart (inpcrd, rst7) has the number of atoms here"
        )
    return int(words[0])


def _netcdf_positions(
    topology: Topology, where: str, stream: BinaryIO, frame: int | None
) -> tuple[Floats, tuple[str, ...]]:
    """Read the positions of a frame. Also returns a note if there are other frames."""
    frames = read_frames(where, stream)
    n_bytes = stream.seek(0, 2)
    number, notes = _chosen(where, frame, frames.counted(n_bytes))
    _refuse_other_number(topology, where, frames.n_atoms)
    begin, size = frames.begin + (number - 1) * frames.stride + frames.start, 3 * frames.n_atoms * frames.dtype.itemsize
    if begin + size > n_bytes:
        raise FormatError(
            f"{where}: variable coordinates ends beyond the {n_bytes:,} bytes of the file; is it complete?"
        )
    stream.seek(begin)
    values = np.frombuffer(stream.read(size), frames.dtype).reshape(frames.n_atoms, 3)
    return _finite(where, number, values, frames.factor), notes


def _netcdf4_positions(
    topology: Topology, where: str, stream: BinaryIO, frame: int | None
) -> tuple[Floats, tuple[str, ...]]:
    """Read the positions of a frame from NetCDF 4, as _netcdf_positions does."""
    with opened_coordinates(where, stream) as found:
        number, notes = _chosen(where, frame, found.n_frames)
        own, n_atoms = topology.parameters.labels, (len(topology), found.n_atoms)
        same = correspondence(own, found.labels(), where, topology.source, n_atoms)
        positions = _finite(where, number, found.read(number - 1, number)[0], found.factor)
        return positions[same.order], (*notes, *same.notes)


def _chosen(where: str, frame: int | None, n_frames: int) -> tuple[int, tuple[str, ...]]:
    """Return the number of the frame to read, and a note if there are other frames."""
    number = 1 if frame is None else frame
    if not 1 <= number <= n_frames:
        raise FormatError(f"{where}: contains no frame {number}; the frames are 1 to {n_frames:,}")
    note = f"{where} contains {n_frames:,} frames; the first was read; `model` selects another"
    return number, (note,) * (frame is None and n_frames > 1)


def _finite(where: str, number: int, values: NDArray[Any], factor: float) -> Floats:
    """Convert positions to A. Raises FormatError if they are not finite."""
    with np.errstate(invalid="ignore"):  # damaged files may contain signaling NaN
        positions: Floats = values.astype(np.float64) * factor
    if not np.isfinite(positions).all():
        k = int(np.argwhere(~np.isfinite(positions))[0, 0])
        raise FormatError(f"{where}: frame {number}: a coordinate of atom {k + 1} is not a finite number")
    return positions


def _refuse_other_number(topology: Topology, where: str, n_atoms: int) -> None:
    if n_atoms != len(topology):
        raise FormatError(f"{where}: {n_atoms:,} atoms; {topology.source} has {len(topology):,}")
