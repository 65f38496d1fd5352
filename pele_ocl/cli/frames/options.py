"""Options about trajectories."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from ...contract import IMAGES, Image
from ...trajectories.given import FrameOptions as FrameOptions
from ...trajectories.given import noted as noted
from ..command import INPUT
from ..options import Command


def trajectory_flags(command: Command) -> Command:
    """Options about a trajectory and `resume`, which the command gets as they are."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.option("--resume", is_flag=True, help="Continue an interrupted run that wrote to OUT.")(command)


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
