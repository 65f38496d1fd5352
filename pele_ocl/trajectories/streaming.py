"""Evaluation of frames in pieces, while other threads read and write."""

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
N_PAIRS = "n_pairs"  # if each frame has a separate pair list

_MOST_CHUNKS = 32  # maximum chunks per piece, enough to make the overhead of a piece negligible
_PIECE_SECONDS = 1.0  # target time per piece, after which results are recorded


@dataclass(frozen=True)
class FurtherColumn:
    """A column of results that is not an energy.

    unit : unit, "" for a count; form : format specification; title : title of the statistics
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
    """Results of consecutive frames.

    columns : columns (m,) by name: the terms in kcal/mol, their total and FURTHER_COLUMNS; NaN for failed frames
    errors : errors of failed frames, by index in the results
    residues : energies (m, n_residues) kcal/mol by term; empty if not requested
    n_imaged : number of imaged frames
    """

    columns: Mapping[str, NDArray[np.generic]]
    errors: Mapping[int, str]
    residues: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)
    n_imaged: int = 0


# Function that evaluates positions (m, n, 3) A, with an optional progress callback.
Evaluate = Callable[[Positions, Progress | None], T]


@dataclass(frozen=True, eq=False)
class PieceResults(Generic[T]):
    """Results of a piece.

    frames : frame numbers; is_earlier : True if an earlier run computed them
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
    """Adaptive number of frames per piece, for about one second on the device, in multiples of chunks."""

    def __init__(self, n_atoms: int) -> None:
        self._chunk = max(1, CHUNK_ATOMS // n_atoms)
        self._frames = self._chunk

    def __call__(self) -> int:
        return self._frames

    def took(self, n_frames: int, seconds: float) -> None:
        """Adapt the size to the time of a piece."""
        wanted = int(n_frames / max(seconds, 1e-6) * _PIECE_SECONDS)
        chunks = min(_MOST_CHUNKS, 2 * -(-self._frames // self._chunk), wanted // self._chunk)
        self._frames = chunks * self._chunk if chunks else max(1, wanted)


def results_over(
    frames: Trajectory, evaluate: Evaluate[T], *, first: int = 0, workers: int = 1,
    tell: Callable[[float], None] | None = None,
) -> Iterator[PieceResults[T]]:  # fmt: skip
    """Yield the results of frames in order, with only a few pieces in memory.

    first : number of frames to skip
    workers : number of pieces to evaluate concurrently
    tell : called with the number of completed frames, including fractions of the current piece
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
    """Evaluate a piece, and add the errors of its unusable frames to the results."""
    results = evaluate(piece.usable(), progress)
    if isinstance(results, FrameResults):
        return cast(T, replace(results, errors={**results.errors, **piece.torn}, n_imaged=piece.n_imaged))
    if piece.torn and hasattr(results, "errors"):
        return replace(results, errors={**results.errors, **piece.torn})  # type: ignore[type-var]
    return results


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, and prefetch the next one in another thread."""
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = other.submit(next, items, None)
            yield item
            del item
