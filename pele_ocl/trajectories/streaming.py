"""Frames evaluated piece by piece, while other threads read the next ones and record the last."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..common.variant import Progress
from ..plan.plan import CHUNK_ATOMS
from .files import Positions
from .reading import Piece, Trajectory

T = TypeVar("T")
SURFACE_AREA = "surface_area"
N_PAIRS = "n_pairs"  # of frames with a pair list each

_MOST_CHUNKS = 32  # of a piece, so that what a piece costs by itself does not count
_PIECE_SECONDS = 1.0  # after which results are recorded


@dataclass(frozen=True)
class FurtherColumn:
    """A column of frames that is no energy.

    unit : of its numbers, "" for a count; form : of a number for people; title : of its statistics
    """

    unit: str = ""
    form: str = ","
    title: str = ""


FURTHER_COLUMNS = {
    SURFACE_AREA: FurtherColumn("angstrom^2", ",.1f", "Surface area of frames (LCPO), A^2"),
    N_PAIRS: FurtherColumn(),
}


@dataclass(frozen=True, eq=False)
class FrameResults:
    """Results of neighbouring frames.

    columns : name -> (m,) numbers, the terms in kcal/mol, their total and FURTHER_COLUMNS; NaN where a frame failed
    errors : reasons why frames failed, by their place among these, from 0
    residues : name of a term -> (m, n_residues) kcal/mol; empty where they were not asked for
    n_imaged : how many frames were imaged before
    """

    columns: Mapping[str, NDArray[np.generic]]
    errors: Mapping[int, str]
    residues: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)
    n_imaged: int = 0


# Results of positions (m, n, 3) A; what it is told of progress may be None.
Evaluate = Callable[[Positions, Progress | None], T]


@dataclass(frozen=True, eq=False)
class PieceResults(Generic[T]):
    """Results of neighbouring frames.

    frames : their numbers; is_earlier : whether an earlier run computed them
    """

    frames: range
    results: T
    is_earlier: bool = False


class ResultsOver(Protocol):
    """Interface of `results_over`."""

    def __call__(
        self, frames: Trajectory, evaluate: Evaluate[T], *, first: int = 0, workers: int = 1,
        tell: Callable[[float], None] | None = None,
    ) -> Iterator[PieceResults[T]]: ...  # fmt: skip


class PieceSize:
    """Number of frames in a piece: as many as a device computes in about a second, or a few chunks."""

    def __init__(self, n_atoms: int) -> None:
        self._chunk = max(1, CHUNK_ATOMS // n_atoms)
        self._frames = self._chunk

    def __call__(self) -> int:
        return self._frames

    def took(self, n_frames: int, seconds: float) -> None:
        """Learn from a piece."""
        wanted = int(n_frames / max(seconds, 1e-6) * _PIECE_SECONDS)
        chunks = min(_MOST_CHUNKS, 2 * -(-self._frames // self._chunk), wanted // self._chunk)
        self._frames = chunks * self._chunk if chunks else max(1, wanted)


def results_over(
    frames: Trajectory, evaluate: Evaluate[T], *, first: int = 0, workers: int = 1,
    tell: Callable[[float], None] | None = None,
) -> Iterator[PieceResults[T]]:  # fmt: skip
    """Yield the results of frames in their order; memory is a few pieces.

    first : how many frames are left out at the start
    workers : pieces that are evaluated at a time
    tell : called with the number of frames done since the start, a fraction where a piece is under way
    """
    pace, done = PieceSize(frames.n_atoms), 0

    def computed(piece: Piece, before: int) -> PieceResults[T]:
        start, m = time.perf_counter(), len(piece.frames)
        progress = None if tell is None or workers > 1 else lambda share: tell(before + share * m)
        results = evaluated(piece, evaluate, progress)
        pace.took(m, time.perf_counter() - start)
        return PieceResults(piece.frames, results)

    with ThreadPoolExecutor(workers) as pool:
        under_way: deque[Future[PieceResults[T]]] = deque()
        for piece in ahead(frames.pieces(first, pace)):
            under_way.append(pool.submit(computed, piece, done))
            done += len(piece.frames)
            del piece
            if len(under_way) > workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def evaluated(piece: Piece, evaluate: Evaluate[T], progress: Progress | None) -> T:
    """Evaluate a piece; unusable frames fail by the reason that the piece has."""
    results = evaluate(piece.usable(), progress)
    if isinstance(results, FrameResults):
        return cast(T, replace(results, errors={**results.errors, **piece.torn}, n_imaged=piece.n_imaged))
    if piece.torn and hasattr(results, "errors"):
        return replace(results, errors={**results.errors, **piece.torn})  # type: ignore[type-var]
    return results


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, each made in another thread while the one before is in use."""
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = other.submit(next, items, None)
            yield item
            del item
