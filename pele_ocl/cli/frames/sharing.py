"""The frames of a command in this process, or shared out to others; of a shard, its own alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import click

from ...trajectories import Trajectory
from ...trajectories.recording import Settings
from ...trajectories.streaming import Evaluate, Evaluated, ResultsOver, evaluated, results_over
from ..cluster import asked_of, shared_out
from .ranges import results_by


@dataclass(frozen=True)
class SharedFrames:
    """The work on frames as `recorded` takes it.

    frames : those that are wanted; output : where their results go
    record : the settings of that file; facts : of the process that computes
    over : takes the place of `results_over`; is_remote : whether other processes compute
    """

    frames: Trajectory
    output: Path | None
    record: Settings
    facts: Mapping[str, object]
    over: ResultsOver = results_over
    is_remote: bool = False


@contextmanager
def shared_frames(
    frames: Trajectory, evaluate: Evaluate[Evaluated], facts: Mapping[str, object], output: Path | None, resume: bool
) -> Iterator[SharedFrames]:
    """The way through frames that --workers, --scheduler and --shard ask for.

    facts : `record`, the settings of the file of results, among what else depends on device and files
    resume : whether the output is gone on with

    Raises UsageError where --shard or --resume have no output.
    """
    shard = asked_of(click.get_current_context()).shard
    if output is None and (resume or shard is not None):
        raise click.UsageError(f"{'--resume goes on with' if resume else '--shard begins'} a file; name it by -o")

    def compute(part: range) -> Evaluated:
        return evaluated(frames.piece(part), evaluate, None)

    with shared_out(compute, facts) as work:
        record, own = cast(Settings, work.facts["record"]), frames
        if shard is not None and output is not None:
            own, output = frames.part(shard.part(frames.frames, "frames")), shard.path(output)
            record = {**record, "shard": str(shard)}
        over = cast(ResultsOver, partial(results_by, work)) if work.is_remote else results_over
        yield SharedFrames(own, output, record, work.facts, over, work.is_remote)
