"""Trajectories in PELE's formats: PDB with the atom lines of the input, or .xtc."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import FormatError, InputError
from ..common.textfiles import lines
from ..formats import is_pdb, read_structure
from ..formats.conformation_files import ConformationFile, ConformationFormat
from ..formats.pdb_writing import atom_lines

SUFFIXES = (".pdb", ".xtc")
_PLACE = slice(30, 54)  # columns of x, y and z
_WIDTH = 80
_NM = 0.1  # nm per A


class PelePdb(ConformationFormat):
    """PDB models with the atom lines of the input: only the coordinates change."""

    def __init__(self, source: Path, atoms: Atoms) -> None:
        """source : file from which the atoms were read"""
        self._source = source
        self._lines = _template(source, atoms)

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        return f"MODEL     {number}\n{self.structure(positions)}ENDMDL    \n\n".encode("latin-1")

    def structure(self, positions: Floats) -> str:
        """Return the atom lines with positions (n, 3) A."""
        if not ((positions > -999.9995) & (positions < 9999.9995)).all():
            raise FormatError(f"{self._source}: a position does not fit into a PDB file")
        places = iter(positions.tolist())
        written = [
            line if not line.startswith(("ATOM", "HETATM"))
            else f"{line[: _PLACE.start]}{'{:8.3f}{:8.3f}{:8.3f}'.format(*next(places))}{line[_PLACE.stop :]}"
            for line in self._lines
        ]  # fmt: skip
        return "".join(f"{line}\n" for line in written)


class Xtc(ConformationFormat):
    """GROMACS XTC format, precision 0.01 A; frames are encoded by MDTraj."""

    def __init__(self) -> None:
        require_mdtraj()

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        from mdtraj.formats import XTCTrajectoryFile

        assert positions is not None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "frame.xtc"
            with XTCTrajectoryFile(str(path), "w") as file:
                frame = (_NM * positions).astype(np.float32)[np.newaxis]
                file.write(frame, time=np.array([number], np.float32), step=np.array([number], np.int32))
            return path.read_bytes()


def require_mdtraj() -> None:
    """Raise InputError if MDTraj is not installed; it is needed to write .xtc files."""
    try:
        import mdtraj  # noqa: F401
    except ImportError:
        raise InputError(
            "trajectories .xtc need mdtraj, which is not installed: pip install 'pele-ocl[trajectories]'"
        ) from None


def require_trajectory_suffix(path: Path) -> None:
    """Raise FormatError for a suffix other than .pdb and .xtc, InputError if .xtc cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise FormatError(f"{path}: trajectories end in {' or '.join(SUFFIXES)}")
    if path.suffix.lower() == ".xtc":
        require_mdtraj()


def trajectory_file(path: Path, layout: PelePdb, size: int | None = None) -> ConformationFile:
    """Create a trajectory file, or continue an existing one.

    layout : layout of PDB models; size : size left by an earlier run in bytes, None for a new file
    """
    return ConformationFile(path, Xtc() if path.suffix.lower() == ".xtc" else layout, size)


def _template(source: Path, atoms: Atoms) -> list[str]:
    """Return the ATOM and TER lines of a PDB file, or generate them for other files."""
    structure = read_structure(source)
    assert atoms.labels is not None
    if not is_pdb(source) or len(structure.labels) != len(atoms):
        return list(atom_lines(atoms.labels, np.zeros((len(atoms), 3)), str(source)))
    numbers = {int(line): place for place, line in enumerate(structure.lines)}
    found: list[str] = []
    for number, line in enumerate(lines(source, "PDB"), 1):
        if number in numbers:
            found.append(line.rstrip("\n").ljust(_WIDTH))
        elif line.startswith("TER") and found and len(found) < 2 * len(atoms) and found[-1] != "TER":
            found.append("TER")
        elif line.startswith("ENDMDL") and found:
            break
    return found
