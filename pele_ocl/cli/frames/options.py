"""Options about trajectories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...trajectories import Trajectory
from ...trajectories.selection import Selection, described_file, selected_atoms
from ..command import INPUT
from ..options import Command
from ..structures.choice import Bools


@dataclass(frozen=True)
class FrameOptions:
    """The trajectory that a command was given; it has none where `paths` is empty.

    words : of --frames; select : of --select, about the atoms of `topology` where there is one; topology : the
        structure of all atoms of the frames
    resume : whether to go on with the output
    """

    paths: tuple[Path, ...]
    words: str | None
    select: str | None
    topology: Path | None
    resume: bool = False

    def require_alone(self, **others: object) -> None:
        """Raise for options of a trajectory without one, and for options, by name, that one leaves no room for."""
        if not self.paths:
            given: dict[str, object] = {"--frames": self.words, "--topology": self.topology}
            for name, value in (given | {"--resume": self.resume or None}).items():
                if value is not None:
                    raise click.UsageError(f"{name} is about a trajectory; give one with -t")
            return
        for name, value in others.items():
            if value:
                option = "--models all" if name == "models_all" else f"--{name.replace('_', '-')}"
                raise click.UsageError(f"choose one of {option} and -t")

    def first_positions(self, atoms: Atoms) -> Floats:
        """The positions (n, 3) A of the first frame, which is of these atoms."""
        select = None if self.topology is None else self.select
        (positions,) = next(iter(Trajectory(self.paths, atoms, self.words, select, self.topology, chunk=1)))
        return np.asarray(positions, np.float64)

    def opened(self, atoms: Atoms, chosen: Bools | None = None) -> Trajectory:
        """The frames, which are of these atoms; chosen : which of the structure's atoms they are, None for all."""
        frames = Trajectory(self.paths, atoms, self.words, self._selection(chosen), self.topology)
        frames.require(len(atoms))
        return frames

    def indices(self, n: int, chosen: Bools | None = None) -> NDArray[np.intp]:
        """Which atoms of a frame the structure's n are; chosen : as in `opened`."""
        found = self._selection(chosen)
        if found is None:
            return np.arange(n)
        if self.topology is None:
            return np.flatnonzero(found)
        names = described_file(self.topology)
        return selected_atoms(found, names.n_atoms, names)

    def _selection(self, chosen: Bools | None) -> Selection | None:
        """The atoms of the frames: those chosen of the structure, where --select is not about a topology."""
        if self.topology is None or self.select is None:
            return chosen
        if chosen is None:
            return self.select
        names = described_file(self.topology)
        found = selected_atoms(self.select, names.n_atoms, names)
        return found[chosen] if len(found) == len(chosen) else found


def trajectory_options(command: Command) -> Command:
    """Options about a trajectory, whose results may be resumed; the command gets `over`, FrameOptions."""
    resume = click.option("--resume", is_flag=True, help="Go on with OUT where an interrupted run ended.")
    return resume(frame_options(command))


def frame_options(command: Command) -> Command:
    """Options about a trajectory; the command gets `over`, FrameOptions. Stands above structure_options.

    With --topology, --select is about the structure that it names, without it about IN.
    """

    @wraps(command)
    def gathered(
        *, trajectory: tuple[Path, ...], frames: str | None, select: str | None, topology: Path | None,
        resume: bool = False, **others: object,
    ) -> object:  # fmt: skip
        over = FrameOptions(trajectory, frames, select if trajectory else None, topology, resume)
        return command(over=over, select=select if topology is None else None, **others)

    decorated: Command = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "-t", "--trajectory", type=INPUT, multiple=True, metavar="FILE",
        help="Frames in place of the positions in IN: .nc, .dcd, .xtc, .trr, .mdcrd, .h5, .pdb or .cif; may be given "
        "several times.",
    ),
    click.option(
        "--frames", metavar="A:B:C",
        help="START:STOP:STEP of the frames wanted, from 0 across all trajectories; -100: are the last hundred.",
    ),
    click.option(
        "--topology", type=INPUT, metavar="FILE", help="Structure of all atoms of the trajectory, for --select."
    ),
)  # fmt: skip
