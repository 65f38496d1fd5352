"""Frames in ranges for other processes, which read them themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...trajectories import Trajectory
from ...trajectories.reading import PIECE_ATOMS
from ...trajectories.streaming import Evaluate, Part, T
from ..cluster import SharedWork

_LEAST_RANGES = 64  # of a trajectory that has so many frames, so that many workers have something to do


def results_by(
    work: SharedWork[range, T], frames: Trajectory, evaluate: Evaluate[T], *, first: int = 0, workers: int = 1,
    tell: Callable[[float], None] | None = None,
) -> Iterator[Part[T]]:  # fmt: skip
    """Results of frames as `results_over` has them, by workers; `evaluate` and `workers` are theirs to choose."""
    parts = list(ranges(frames, first))
    done = 0
    for part, results in zip(parts, work.over(parts), strict=True):
        done += len(part)
        if tell is not None:
            tell(done)
        yield Part(part, results)


def ranges(frames: Trajectory, first: int) -> Iterator[range]:
    """The frames behind the first so many, in ranges whose bounds depend on nothing else."""
    n = len(frames.frames)
    size = max(1, min(-(-n // _LEAST_RANGES), PIECE_ATOMS // frames.n_atoms))
    while first < n:
        end = min(n, (first // size + 1) * size)
        yield frames.frames[first:end]
        first = end
