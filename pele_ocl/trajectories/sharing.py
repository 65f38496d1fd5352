"""Evaluation of frames in this process, by workers, or for a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from ..common.errors import KeywordError
from ..jobs import Place, Shard, shared
from ..jobs.sharing import Shared
from .reading import PIECE_ATOMS, Trajectory
from .recording import Settings
from .streaming import Evaluate, FrameResults, PieceResults, ResultsOver, evaluated, results_over

_LEAST_RANGES = 64  # minimum number of ranges, if there are enough frames, to keep many workers busy


@dataclass(frozen=True, eq=False)
class OpenedFrames:
    """Frames of a trajectory with the function that evaluates them.

    evaluate : function that evaluates positions
    facts : information that depends on the device and the files, including `record`, the settings of the results
    """

    frames: Trajectory
    evaluate: Evaluate[FrameResults]
    facts: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FramesSpec:
    """Description of work on frames. open : picklable function that opens the frames; here : frames already opened"""

    open: Callable[[], OpenedFrames]
    here: OpenedFrames | None = None

    @cached_property
    def opened(self) -> OpenedFrames:
        """The frames, opened once per process."""
        return self.open() if self.here is None else self.here

    def __getstate__(self) -> dict[str, object]:
        return {"open": self.open, "here": None}

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the opened frames."""
        return self.opened.facts

    def compute(self, part: range, /) -> FrameResults:
        """Compute the results of a subset of the frames."""
        return evaluated(self.opened.frames.piece(part), self.opened.evaluate, None)


@dataclass(frozen=True)
class SharedFrames:
    """Arguments for `recorded`.

    frames : frames to compute; output : file of the results
    record : settings for the file; facts : information from the computing process
    stream : replacement for `results_over`; is_remote : True if other processes compute the results
    """

    frames: Trajectory
    output: Path | None
    record: Settings
    facts: Mapping[str, Any]
    stream: ResultsOver = results_over
    is_remote: bool = False


@contextmanager
def shared_frames(
    spec: FramesSpec, output: Path | None, resume: bool, place: Place | None = None, shard: Shard | None = None
) -> Iterator[SharedFrames]:
    """Context manager for evaluating frames in this process, by workers, or for a shard.

    place : where to compute, by default in this process; shard : part of the frames to compute
    resume : True to continue the output

    Raises InputError for a shard or `resume` without output.
    """
    frames = spec.opened.frames
    require_output(output, resume, shard)
    with shared(spec, place or Place(None, None, None)) as work:
        record, own = work.facts["record"], frames
        if shard is not None and output is not None:
            own, output = frames.part(shard.part(frames.frames, "frames")), shard.path(output)
            record = {**record, "shard": str(shard)}
        stream = cast(ResultsOver, partial(_results_by, work)) if work.is_remote else results_over
        yield SharedFrames(own, output, record, work.facts, stream, work.is_remote)


def require_output(output: Path | None, resume: bool, shard: Shard | None) -> None:
    """Raise InputError for a shard or `resume` without output."""
    if output is None and (resume or shard is not None):
        raise KeywordError(f"{'`resume` continues' if resume else '`shard` begins'} a file; give it as `output`")


def _results_by(
    work: Shared[range, FrameResults], frames: Trajectory, evaluate: Evaluate[FrameResults], *, first: int = 0,
    workers: int = 1, tell: Callable[[float], None] | None = None,
) -> Iterator[PieceResults[FrameResults]]:  # fmt: skip
    """Yield the results of frames like `results_over`, computed by workers; `evaluate` and `workers` are ignored."""
    parts = list(_ranges(frames, first))
    done = 0
    for part, results in zip(parts, work.results(parts), strict=True):
        done += len(part)
        if tell is not None:
            tell(done)
        yield PieceResults(part, results)


def _ranges(frames: Trajectory, first: int) -> Iterator[range]:
    """Split the frames from index `first` into ranges with reproducible bounds."""
    n = len(frames.frames)
    size = max(1, min(-(-n // _LEAST_RANGES), PIECE_ATOMS // frames.n_atoms))
    while first < n:
        end = min(n, (first // size + 1) * size)
        yield frames.frames[first:end]
        first = end
