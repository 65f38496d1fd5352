"""Options about trajectories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats, Taken
from ...atoms.selection import SelectableAtoms
from ...atoms.selection import Selection as Words
from ...common.errors import FormatError, InputError
from ...contract import IMAGES, Image
from ...trajectories import Trajectory
from ...trajectories.selection import Selection, described_atoms, described_file, selected_atoms
from ..command import INPUT
from ..options import Command
from ..terminal import note


@dataclass(frozen=True)
class FrameOptions:
    """Options about the trajectory that a command was given; `paths` is empty if it was given none.

    words : of --frames; select : of --select, about the atoms of `topology` if there is one; topology : the structure
        of all atoms of the frames
    resume : True to go on with the output
    image : of --image, None if it was not given
    """

    paths: tuple[Path, ...]
    words: str | None
    select: str | None
    topology: Path | None
    resume: bool = False
    image: Image | None = None

    @property
    def imaging(self) -> Image:
        """Way in which frames with a cell are imaged."""
        return self.image or "auto"

    def require_alone(self, **others: object) -> None:
        """Raise for options of a trajectory without one, and for options, by name, that one leaves no room for."""
        if not self.paths:
            given: dict[str, object] = {"--frames": self.words, "--topology": self.topology, "--image": self.image}
            for name, value in (given | {"--resume": self.resume or None}).items():
                if value is not None:
                    raise click.UsageError(f"{name} is about a trajectory; give one with -t")
            return
        for name, value in others.items():
            if value:
                option = "--models all" if name == "models_all" else f"--{name.replace('_', '-')}"
                raise click.UsageError(f"choose one of {option} and -t")

    def first_positions(self, atoms: Atoms, selection: Words | None) -> tuple[Floats, str]:
        """Read the positions (n, 3) A of the first frame, which is of these atoms, or of the selected ones among them.

        selection : about names, of the atoms that a command takes; positions of others are then 0

        Returns the positions, and a sentence if the frame is of the selected atoms alone, else "".
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
                f"{self.paths[0]}: its frames have the {len(chosen):,} selected atoms alone, of {len(atoms):,} in the "
                "structure"
            )
        return np.asarray(positions, np.float64), ""

    def _stripped(self, atoms: Atoms) -> Trajectory | None:
        """Open the frames if they are of these atoms and no others."""
        try:
            return Trajectory(self.paths, atoms, self.words, image=self.imaging)
        except (FormatError, InputError):
            return None

    def opened(self, atoms: Atoms, chosen: Taken | None = None) -> Trajectory:
        """Open the frames of these atoms; chosen : the atoms of the structure that they are, None for all"""
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
        """Choose some of a structure's atoms in the frames, (k,) indices among those that were taken."""
        return taken.part(own) if self.topology is None else self._in_topology(self.topology, taken)[own]

    def _selection(self, chosen: Taken | None) -> Selection | None:
        """Find the atoms of the frames: the chosen ones of the structure, unless --select is about a topology."""
        if self.topology is None:
            return chosen
        return self.select if chosen is None else self._in_topology(self.topology, chosen)

    def _in_topology(self, topology: Path, chosen: Taken) -> NDArray[np.intp]:
        """Find the chosen atoms of the structure among those of the topology."""
        names = described_file(topology)
        everyone = np.arange(names.n_atoms)
        found = everyone if self.select is None else selected_atoms(self.select, names.n_atoms, names)
        return chosen.among(names.names, found, str(topology))


def noted(frames: Trajectory) -> Trajectory:
    """Tell the notes about frames, and give the frames."""
    for sentence in frames.notes:
        note(f"Note: {sentence}")
    return frames


def trajectory_options(command: Command) -> Command:
    """Options about a trajectory, whose results may be resumed; the command gets `over`, FrameOptions."""
    resume = click.option("--resume", is_flag=True, help="Continue an interrupted run that wrote to OUT.")
    return resume(frame_options(command))


def frame_options(command: Command) -> Command:
    """Options about a trajectory; the command gets `over`, FrameOptions. Stands above structure_options.

    With --topology, --select is about the structure that it names, without it about IN.
    """

    @wraps(command)
    def gathered(
        *, trajectory: tuple[Path, ...], frames: str | None, select: str | None, topology: Path | None,
        image: Image | None, resume: bool = False, **others: object,
    ) -> object:  # fmt: skip
        given = FrameOptions(trajectory, frames, select if trajectory else None, topology, resume, image)
        return command(trajectory=given, select=select if topology is None else None, **others)

    decorated: Command = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "-t", "--trajectory", type=INPUT, multiple=True, metavar="FILE",
        help="Trajectory, used instead of the positions in IN: .nc, .dcd, .xtc, .trr, .mdcrd, .h5, .pdb or "
        ".cif. Can be given several times.",
    ),
    click.option(
        "--frames", metavar="A:B:C",
        help="Frames to take, START:STOP:STEP, counted from 0 through all trajectories; -100: takes the last "
        "hundred.",
    ),
    click.option(
        "--topology", type=INPUT, metavar="FILE", help=
            "Structure with all atoms of the trajectory, if IN has only some of them; --select chooses "
            "them."
    ),
    click.option(
        "--image", type=click.Choice(IMAGES),
        help="auto makes molecules whole and puts them side by side if frames have a unit cell; none takes "
        "frames as they are.",
    ),
)  # fmt: skip
