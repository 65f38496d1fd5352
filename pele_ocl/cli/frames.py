"""Options about trajectories."""

from __future__ import annotations

from functools import wraps
from pathlib import Path

import click

from ..contract import Image
from ..trajectories.given import FrameOptions as FrameOptions
from ..trajectories.given import noted as noted
from .groups import click_options
from .option_groups import FramesGroup
from .options import Command

_RESUME = click.option("--resume", is_flag=True, help="Continue an interrupted run that wrote to OUT.")


def trajectory_flags(command: Command) -> Command:
    """Options about a trajectory and `resume`, which the command gets as they are."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return _RESUME(command)


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


_OPTIONS = click_options(FramesGroup)
