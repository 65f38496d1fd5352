"""The conformations of one molecule that a run minimises: frames of a trajectory, or all models of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...atoms import Atoms, Floats
from ...inputfile import InputFile
from ...trajectories import Trajectory
from ...trajectories.files import Positions
from ...trajectories.fingerprints import fingerprint, sha256_of
from ..frames import FrameOptions
from ..molecule import read_molecule
from ..options import ReadAtoms


@dataclass(frozen=True, eq=False)
class Conformations:
    """source, atoms : the molecule; names : of all conformations; sha256 : of all that they come from"""

    source: InputFile
    atoms: Atoms
    names: Sequence[str]
    sha256: str
    _given: Trajectory | Floats

    @classmethod
    def of(cls, path: Path, read_atoms: ReadAtoms, over: FrameOptions, models: str) -> Conformations:
        """Those of the frames where a trajectory was given, else of the models."""
        molecule = read_molecule(path, read_atoms, "one" if over.paths else models)
        atoms, source = molecule.atoms, molecule.source
        if not over.paths:
            assert molecule.conformations is not None
            names = [f"model {number}" for number in molecule.numbers]
            return cls(source, atoms, names, source.sha256, molecule.conformations)
        frames = over.opened(atoms, molecule.chosen)
        files = [fingerprint(path) for path in frames.paths]
        of = {"source": source.sha256, "files": files, "frames": frames.frames, "atoms": frames.atoms_sha256}
        return cls(source, atoms, [f"frame {k}" for k in frames.frames], sha256_of(of), frames)

    def __len__(self) -> int:
        return len(self.names)

    def positions(self, part: range) -> Positions:
        """The positions (len(part), n, 3) A of some conformations, by their places."""
        if isinstance(self._given, Trajectory):
            return self._given.positions(self._given.frames[part.start : part.stop])
        return self._given[part.start : part.stop]

    def torn(self, part: range) -> Mapping[int, str]:
        """Why conformations whose positions are NaN cannot be used, by their place in a part."""
        if isinstance(self._given, Trajectory):
            return self._given.piece(self._given.frames[part.start : part.stop]).torn
        return {}

    def close(self) -> None:
        """Close the file that positions were read from."""
        if isinstance(self._given, Trajectory):
            self._given.close()
