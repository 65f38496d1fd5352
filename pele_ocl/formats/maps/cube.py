"""Gaussian cube files: text, bohr, z fastest, with a new line after each run along z.

Programs assume that an electrostatic potential in a cube file is in hartree/e.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gemmi
import numpy as np

from ...atoms import Atoms, Floats
from ...common.errors import FormatError
from ...common.inputfile import InputFile
from ...common.textfiles import lines, number, quoted
from ...grid import Grid, Map
from ...units import BOHR_A
from ..registry import Details, MapFormat
from .text_files import orthogonal_spacing, read_numbers, texts, title_line, understood, unit_line

_PER_LINE = 6
_TITLE = 200  # maximum length; VMD fails from 255 characters


def write_cube(path: Path, map_: Map, details: Details) -> None:
    """Write a map and the atoms, if any."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(_text(map_, details))


def read_cube(file: InputFile) -> Map:
    """Read a map with one value per point.

    Lengths are in bohr, or in Angstrom if the numbers of points are negative, as in Gaussian's manual.

    Raises FormatError for orbitals, several values per point, non-orthogonal axes, and damaged files.
    """
    path = file.path
    text = lines(file, "cube")
    titles = [next(text, ""), next(text, "")]
    first = _fields(path, 3, next(text, ""), (4, 5))
    n_atoms = _count(path, 3, first[0])
    if n_atoms < 0 or first[4:] not in ([], [1.0]):
        raise FormatError(f"{path}:3: contains orbitals, or several values per point; only maps of one can be read")
    axes = np.array([_fields(path, at, next(text, ""), (4,)) for at in (4, 5, 6)])
    counts = [_count(path, at, n) for at, n in zip((4, 5, 6), axes[:, 0].tolist(), strict=True)]
    grid = _grid(path, np.array(first[1:4]), axes[:, 1:], counts)
    for at in range(7, 7 + n_atoms):
        _fields(path, at, next(text, ""), (5,))
    values, rest = read_numbers(text, len(grid), path, 7 + n_atoms)
    if rest or any(line.strip() for line in text):
        raise FormatError(f"{path}: contains more than the {len(grid):,} values it announces")
    return Map.owning(grid, np.ascontiguousarray(values.reshape(grid.shape).transpose(2, 1, 0)), **understood(titles))


def _text(map_: Map, details: Details) -> Iterator[str]:
    # The columns are those of Gaussian: I5, 3F12.6, 6E13.5. Wider numbers are still separated by a blank.
    yield f"{title_line(map_)[:_TITLE] or 'map'}\n{unit_line(map_)}\n"
    atom_lines = _atom_lines(details.atoms, map_)
    yield f"{len(atom_lines):5d}{_lengths(map_.grid.origin / BOHR_A, 6)}\n"
    for n, axis in zip(map_.grid.shape, np.diag(map_.grid.spacing / BOHR_A), strict=True):
        yield f"{n:5d}{_lengths(axis, 8)}\n"
    yield from atom_lines
    nx, ny, nz = map_.grid.shape
    step = max(1, 65_536 // (ny * nz))
    for start in range(0, nx, step):
        details.tell(start / nx)
        planes = map_.values[:, :, start : start + step].transpose(2, 1, 0)
        yield from texts(planes.reshape(-1, nz), _PER_LINE, "%12.5E", " ")


def _lengths(values: Floats, digits: int) -> str:
    return "".join(f" {value:11.{digits}f}" for value in values.tolist())


def _atom_lines(atoms: Atoms | None, map_: Map) -> list[str]:
    """Write the atoms, or a dummy atom, because VMD and PyMOL interpret files without atoms as orbitals."""
    if atoms is None or len(atoms) == 0:
        return [_atom_line("X", 0.0, map_.grid.origin)]
    elements = ["X"] * len(atoms) if atoms.labels is None else atoms.labels.elements.tolist()
    return [_atom_line(*atom) for atom in zip(elements, atoms.charges.tolist(), atoms.positions, strict=True)]


def _atom_line(element: str, charge: float, position: Floats) -> str:
    return f"{gemmi.Element(element).atomic_number:5d} {charge:11.6f}{_lengths(position / BOHR_A, 6)}\n"


def _fields(path: Path, at: int, line: str, allowed: tuple[int, ...]) -> list[float]:
    """Read the numbers in a line of the header."""
    numbers = [number(word) for word in line.split()]
    if len(numbers) not in allowed or None in numbers:
        wanted = " or ".join(map(str, allowed))
        raise FormatError(f"{path}:{at}: expected {wanted} numbers, not {quoted(line.strip())}; is it a cube file?")
    return [value for value in numbers if value is not None]


def _count(path: Path, at: int, value: float) -> int:
    if not float(value).is_integer():
        raise FormatError(f"{path}:{at}: begins with {value:g}; expected a whole number; is it a cube file?")
    return int(value)


def _grid(path: Path, origin: Floats, steps: Floats, counts: list[int]) -> Grid:
    spacing = orthogonal_spacing(path, steps)
    in_angstrom = all(n < 0 for n in counts)
    scale = 1.0 if in_angstrom else BOHR_A
    return Grid(origin * scale, spacing * scale, [-n for n in counts] if in_angstrom else counts)


FORMAT = MapFormat(read_cube, write_cube, unit="hartree/e")
