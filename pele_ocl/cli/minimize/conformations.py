"""The conformations of one molecule that a run minimises: frames of a trajectory, or all models of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...atoms import Atoms, Floats
from ...contract import of_structure
from ...inputfile import InputFile
from ...trajectories import Trajectory
from ...trajectories.files import Positions
from ...trajectories.fingerprints import fingerprint, sha256_of
from ..frames import FrameOptions
from ..molecule import Molecule, read_molecule
from ..options import ReadAtoms


@dataclass(frozen=True, eq=False)
class Conformations:
    """Conformations of one molecule, which are read as they are asked for.

    source, atoms : the molecule; names, numbers : of all conformations, "frame 7" and 7
    sha256 : of all that they come from; failed : why models cannot be read, by place
    """

    source: InputFile
    atoms: Atoms
    names: Sequence[str]
    numbers: Sequence[int]
    sha256: str
    failed: Mapping[int, str]
    _given: Trajectory | Floats

    @classmethod
    def of(cls, path: Path, read_atoms: ReadAtoms, over: FrameOptions, models: str) -> Conformations:
        """Those of the frames where a trajectory was given, else of the models."""
        molecule = read_molecule(path, read_atoms, "one" if over.paths else models)
        atoms, source = molecule.atoms, molecule.source
        if not over.paths:
            molecule = molecule.without(_refused(molecule))
            atoms = molecule.atoms
            assert molecule.conformations is not None
            names = [f"model {number}" for number in molecule.numbers]
            return cls(
                source, atoms, names, molecule.numbers, source.sha256, molecule.failed, molecule.conformations
            )  # fmt: skip
        frames = over.opened(atoms, molecule.chosen)
        files = [fingerprint(path) for path in frames.paths]
        of = {"source": source.sha256, "files": files, "frames": frames.frames, "atoms": frames.atoms_sha256}
        numbers = frames.frames
        return cls(source, atoms, [f"frame {k}" for k in numbers], numbers, sha256_of(of), {}, frames)

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
        return {place - part.start: reason for place, reason in self.failed.items() if place in part}

    def close(self) -> None:
        """Close the file that positions were read from."""
        if isinstance(self._given, Trajectory):
            self._given.close()


def _refused(molecule: Molecule) -> dict[int, str]:
    """Find models that cannot be minimised, and why, by place."""
    found = ((place, of_structure(atoms, "noted")) for place, atoms in molecule.models())
    return {place: of.text for place, findings in found for of in findings[::-1] if of.action == "refused"}
