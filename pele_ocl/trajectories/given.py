"""Trajectory options of functions and commands: files, frames and atoms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Taken
from ..atoms.selection import SelectableAtoms
from ..atoms.selection import Selection as Words
from ..common.arguments import file_path, file_paths
from ..common.errors import FormatError, InputError, KeywordError
from ..common.notes import note
from ..contract import Image
from ..jobs.outputs import expanded
from .files import MemoryFile, held_frames
from .reading import Trajectory
from .selection import Selection, described_atoms, described_file, selected_atoms


def trajectory_paths(trajectory: object) -> tuple[Path | MemoryFile, ...]:
    """Return the files of a trajectory, expanding patterns, or the frames in memory.

    Raises InputError for anything else.
    """
    if trajectory is None:
        return ()
    held = held_frames(trajectory)
    if held is not None:
        return (held,)
    files = [trajectory] if isinstance(trajectory, str | PathLike) else file_paths("trajectory", trajectory)
    return expanded([file_path(each, "trajectory") for each in files])


@dataclass(frozen=True)
class FrameOptions:
    """Options of a trajectory that replaces the positions of a structure.

    paths : trajectory files, empty if there is no trajectory
    words : frames to read, such as "0:100:10"; topology : structure with all atoms of the frames
    select : selection of atoms in the topology, or in the structure if there is no topology
    resume : True to continue the output
    image : imaging of frames with a unit cell, None for "auto"
    """

    paths: tuple[Path | MemoryFile, ...]
    words: str | None
    select: str | None
    topology: Path | None
    resume: bool = False
    image: Image | None = None

    @classmethod
    def of_files(
        cls, trajectory: object, frames: Any, select: str | None, topology: str | PathLike[str] | None,
        image: Image | None,
    ) -> FrameOptions | None:  # fmt: skip
        """Create the options for one or several files; None for frames in memory and opened trajectories."""
        several = [trajectory] if isinstance(trajectory, str | PathLike) else trajectory
        if not isinstance(several, list | tuple) or not several:
            return None
        if not all(isinstance(each, str | PathLike) for each in several):
            return None
        return cls(tuple(map(Path, several)), frames, select, None if topology is None else Path(topology), image=image)

    @property
    def imaging(self) -> Image:
        """Imaging of frames with a unit cell."""
        return self.image or "auto"

    def require_alone(self, **others: object) -> None:
        """Raise InputError for trajectory options without a trajectory, and for keywords that exclude a trajectory.

        others : values of such keywords; None and False mean not given
        """
        if not self.paths:
            given: dict[str, object] = {"frames": self.words, "topology": self.topology, "image": self.image}
            for name, value in (given | {"resume": self.resume or None}).items():
                if value is not None:
                    raise KeywordError(f"`{name}` applies to a trajectory; give one as `trajectory`")
            return
        for name, value in others.items():
            if value:
                keyword = "models='all'" if name == "models_all" else name
                raise KeywordError(f"choose one of `{keyword}` and `trajectory`")

    def first_positions(self, atoms: Atoms, selection: Words | None) -> tuple[Floats, str]:
        """Read the positions (n, 3) A of the first frame, which has these atoms or only the selected ones.

        selection : selection by labels; if the frame has only these atoms, the positions of all others are 0

        Returns the positions, and a note if the frame has only the selected atoms, otherwise "".
        """
        select = None if self.topology is None else self.select
        try:
            (positions,) = next(iter(Trajectory(self.paths, atoms, self.words, select, self.topology, 1, self.imaging)))
        except FormatError:
            if selection is None:
                raise
            known = described_atoms(atoms) or SelectableAtoms(len(atoms))
            chosen = selected_atoms(selection, len(atoms), replace(known, positions=None))
            stripped = self._stripped(atoms[chosen])
            if stripped is None:
                raise
            own = next(iter(stripped))[0]
            positions = np.zeros((len(atoms), 3))
            positions[chosen] = own
            return positions, (
                f"{self.paths[0]}: its frames contain only the {len(chosen):,} selected atoms, of {len(atoms):,} in "
                "the structure"
            )
        return np.asarray(positions, np.float64), ""

    def _stripped(self, atoms: Atoms) -> Trajectory | None:
        """Open the frames if they contain exactly these atoms; otherwise None."""
        try:
            return Trajectory(self.paths, atoms, self.words, image=self.imaging)
        except (FormatError, InputError):
            return None

    def opened(self, atoms: Atoms, chosen: Taken | None = None) -> Trajectory:
        """Open the frames for these atoms. chosen : selection of the atoms in the structure, None for all"""
        select = self._selection(chosen)
        try:
            frames = Trajectory(self.paths, atoms, self.words, select, self.topology, image=self.imaging)
        except (FormatError, InputError):
            is_of_structure = chosen is not None and (self.topology is None or self.select is None)
            stripped = self._stripped(atoms) if is_of_structure else None
            if stripped is None:
                raise
            frames = stripped
        frames.require(len(atoms))
        return frames

    def part(self, taken: Taken, own: NDArray[np.intp]) -> Selection:
        """Return the selection in the frames of a subset of the selected atoms. own : (k,) indices among these"""
        return taken.part(own) if self.topology is None else self._in_topology(self.topology, taken)[own]

    def _selection(self, chosen: Taken | None) -> Selection | None:
        """Return the selection of atoms in the frames, from the structure or the topology."""
        if self.topology is None:
            return chosen
        return self.select if chosen is None else self._in_topology(self.topology, chosen)

    def _in_topology(self, topology: Path, chosen: Taken) -> NDArray[np.intp]:
        """Find the selected atoms of the structure in the topology."""
        names = described_file(topology)
        everyone = np.arange(names.n_atoms)
        found = everyone if self.select is None else selected_atoms(self.select, names.n_atoms, names)
        return chosen.among(names.names, found, str(topology))


def noted(frames: Trajectory) -> Trajectory:
    """Report the notes of a trajectory, and return it."""
    for sentence in frames.notes:
        note(f"Note: {sentence}")
    return frames
