"""Frames that are evaluated in this process, or by workers; of a shard, its own alone."""

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

_LEAST_RANGES = 64  # of a trajectory that has so many frames, so that many workers have something to do


@dataclass(frozen=True, eq=False)
class OpenedFrames:
    """Frames of a trajectory, and how they are evaluated.

    evaluate : how positions are evaluated
    facts : `record`, the settings of the file of results, among what else depends on device and files
    """

    frames: Trajectory
    evaluate: Evaluate[FrameResults]
    facts: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FramesSpec:
    """Work on frames: how each process opens them, which pickles, and what this one has opened."""

    open: Callable[[], OpenedFrames]
    here: OpenedFrames | None = None

    @cached_property
    def opened(self) -> OpenedFrames:
        """Frames, opened once in each process."""
        return self.open() if self.here is None else self.here

    def __getstate__(self) -> dict[str, object]:
        return {"open": self.open, "here": None}

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the frames."""
        return self.opened.facts

    def compute(self, part: range, /) -> FrameResults:
        """Compute the results of some frames."""
        return evaluated(self.opened.frames.piece(part), self.opened.evaluate, None)


@dataclass(frozen=True)
class SharedFrames:
    """Work on frames as `recorded` takes it.

    frames : to be computed; output : the file of their results
    record : the settings of that file; facts : of the process that computes
    stream : takes the place of `results_over`; is_remote : True if other processes compute
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
    """Open the way through frames: here, by workers, or through a shard's alone.

    place : where they are computed, by default here; shard : the part to compute
    resume : True if the output is gone on with

    Raises InputError if a shard or `resume` have no output.
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
    """Raise InputError if a run that continues a file, or a shard, has none."""
    if output is None and (resume or shard is not None):
        raise KeywordError(f"{'`resume` goes on with' if resume else '`shard` begins'} a file; name it as `output`")


def _results_by(
    work: Shared[range, FrameResults], frames: Trajectory, evaluate: Evaluate[FrameResults], *, first: int = 0,
    workers: int = 1, tell: Callable[[float], None] | None = None,
) -> Iterator[PieceResults[FrameResults]]:  # fmt: skip
    """Results of frames as `results_over` has them, by workers; `evaluate` and `workers` are theirs to choose."""
    parts = list(_ranges(frames, first))
    done = 0
    for part, results in zip(parts, work.results(parts), strict=True):
        done += len(part)
        if tell is not None:
            tell(done)
        yield PieceResults(part, results)


def _ranges(frames: Trajectory, first: int) -> Iterator[range]:
    """Divide the frames after the first so many into ranges whose bounds depend on nothing else."""
    n = len(frames.frames)
    size = max(1, min(-(-n // _LEAST_RANGES), PIECE_ATOMS // frames.n_atoms))
    while first < n:
        end = min(n, (first // size + 1) * size)
        yield frames.frames[first:end]
        first = end
