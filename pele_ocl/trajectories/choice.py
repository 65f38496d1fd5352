"""Frames as a user names them beside the structure that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.selection import SelectableAtoms
from ..atoms.selection import Selection as Words
from ..common.errors import FormatError, InputError
from ..contract import Image
from .frames import FrameWords
from .reading import Trajectory
from .selection import Selection, described_atoms, described_file, selected_atoms

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FrameChoice:
    """Frames of a structure: files and what is taken of them. Without files there are none.

    paths : of trajectories; frames : which, as `trajectory` takes them
    topology : structure of all atoms of the frames, if the structure has only some; select : which of its atoms
    image : as `trajectory` has it
    """

    paths: tuple[Path, ...] = ()
    frames: FrameWords = None
    select: Selection | None = None
    topology: Path | None = None
    image: Image = "auto"

    @classmethod
    def of(
        cls, paths: Sequence[Path], frames: FrameWords, select: Selection | None, topology: str | PathLike[str] | None,
        image: Image | None,
    ) -> FrameChoice:  # fmt: skip
        """Make the choice. Raises InputError for words about frames without any."""
        if not paths:
            for name, value in {"frames": frames, "topology": topology, "image": image}.items():
                if value is not None:
                    raise InputError(f"`{name}` is about a trajectory; give one by `trajectory`")
        return cls(tuple(paths), frames, select, None if topology is None else Path(topology), image or "auto")

    def first_positions(self, atoms: Atoms, selection: Words | None) -> tuple[Floats, str]:
        """Read the positions (n, 3) A of the first frame, which is of these atoms, or of the selected ones among them.

        selection : about names, of the atoms that are wanted; positions of others are then 0

        Returns the positions, and a sentence if the frame is of the selected atoms alone, else "".
        """
        select = None if self.topology is None else self.select
        try:
            (positions,) = next(iter(self._trajectory(atoms, select, self.topology, 1)))
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
                f"{self.paths[0]}: its frames have the {len(chosen):,} selected atoms alone, of {len(atoms):,} in the "
                "structure"
            )
        return np.asarray(positions, np.float64), ""

    def opened(self, atoms: Atoms, chosen: Bools | None = None) -> Trajectory:
        """Open the frames of these atoms; chosen : the atoms of the structure that they are, None for all"""
        select = self._selection(chosen)
        try:
            frames = self._trajectory(atoms, select, self.topology)
        except (FormatError, InputError):
            stripped = self._stripped(atoms) if select is chosen is not None else None
            if stripped is None:
                raise
            frames = stripped
        frames.require(len(atoms))
        return frames

    def indices(self, n: int, chosen: Bools | None = None) -> NDArray[np.intp]:
        """Find the atoms of a frame that the structure's n atoms are; chosen : as in `opened`."""
        if self.topology is None:
            return np.arange(n) if chosen is None else np.flatnonzero(chosen)
        found = self._selection(chosen)
        if found is None:
            return np.arange(n)
        names = described_file(self.topology)
        return selected_atoms(found, names.n_atoms, names)

    def of_files(self, paths: Sequence[Path]) -> FrameChoice:
        """The same frames of other files, which have no topology."""
        return replace(self, paths=tuple(paths), select=None, topology=None)

    def _trajectory(
        self, atoms: Atoms | None, select: Selection | None, topology: Path | None, chunk: int | None = None
    ) -> Trajectory:
        return Trajectory(self.paths, atoms, self.frames, select, topology, chunk, self.image)

    def _stripped(self, atoms: Atoms) -> Trajectory | None:
        """Open the frames if they are of these atoms and no others."""
        try:
            return self._trajectory(atoms, None, None)
        except (FormatError, InputError):
            return None

    def _selection(self, chosen: Bools | None) -> Selection | None:
        """Find the atoms of the frames: the chosen ones of the structure, unless `select` is about a topology."""
        if self.topology is None or self.select is None:
            return chosen
        if chosen is None:
            return self.select
        names = described_file(self.topology)
        found = selected_atoms(self.select, names.n_atoms, names)
        return found[chosen] if len(found) == len(chosen) else found
