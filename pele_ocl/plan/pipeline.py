"""Transfers of conformations to and from the device in chunks, which overlap with computation."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..common.variant import Progress
from .evaluator import Evaluator, Failures, Outputs, untold
from .passes import Explain, Passes, reason_of

if TYPE_CHECKING:
    from ..opencl.queue import Event, Queue

# Number of chunks in flight: one is encoded, one computed, one collected.
UNDER_WAY = 3


@dataclass(eq=False)
class Staging:
    """Host memory of a chunk, used for asynchronous transfers.

    positions : (batch, 3 n) encoded; results : (batch, n_results)
    events : kept while the device uses the memory; the last one signals the end
    """

    positions: NDArray[Any]
    results: NDArray[Any]
    events: Sequence[Event] = ()


@dataclass(eq=False)
class Chunk:
    """Conformations that are computed together, with their queue and host memory."""

    part: slice
    queue: Queue
    staging: Staging


class Pipeline(Evaluator):
    """Evaluates conformations with passes, in chunks that fit their buffers."""

    def __init__(self, atoms: Atoms, passes: Passes, explain: Explain) -> None:
        self.atoms, self.passes, self._explain = atoms, passes, explain
        self.batch = passes.batch
        self._staging: list[Staging] = []
        self._plain = self._queue(False)  # stateless, and shared by all evaluations without profiling

    def _queue(self, profile: bool) -> Queue:
        from ..opencl.queue import Queue

        return Queue(self.passes.queue.device, self.passes.queue.precision, profile=profile)

    def takes(self, m: int) -> bool:
        return self.batch >= min(m, self.passes.most_at_once)

    def start(self, conformation: Floats, failures: Failures) -> None:
        self._started = conformation
        self._start(self._single, conformation, failures)

    def finish(self, found: Outputs, failures: Failures) -> Mapping[str, float]:
        try:
            self._collect(self._single, self._started, found, failures)
        except BaseException:
            self._plain.finish()
            raise
        return {}

    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        chunks = self._chunks(len(conformations), profile, tell is untold)
        try:
            if len(chunks) == 1:
                self._start(chunks[0], conformations, failures, None if tell is untold else tell)
                self._collect(chunks[0], conformations, found, failures)
                tell(1.0)
            else:
                self._compute_several(chunks, conformations, found, failures, tell)
        except BaseException:
            chunks[0].queue.finish()  # before the next evaluation begins
            raise
        return self._seconds(chunks) if profile else {}

    def repeat(self, count: int) -> None:
        """Repeat the passes for the first conformation on the device."""
        queue = self._queue(False)
        for _ in range(count):
            self.passes.launch(queue, 1)
        queue.finish()

    def _compute_several(
        self, chunks: list[Chunk], conformations: NDArray[Any], found: Outputs, failures: Failures, tell: Progress
    ) -> None:
        """Keep up to UNDER_WAY chunks in flight; a second thread collects results."""

        def collect(chunk: Chunk) -> float:
            self._collect(chunk, conformations, found, failures)
            share: float = chunk.part.stop / len(conformations)
            return share

        with ThreadPoolExecutor(1) as second:
            under_way: deque[Future[float]] = deque()
            for chunk in chunks:
                if len(under_way) == UNDER_WAY:
                    tell(under_way.popleft().result())
                self._start(chunk, conformations, failures)
                under_way.append(second.submit(collect, chunk))
            while under_way:
                tell(under_way.popleft().result())

    def _seconds(self, chunks: list[Chunk]) -> dict[str, float]:
        each = [self.passes.seconds(chunk.queue) for chunk in chunks]
        return {name: sum(seconds[name] for seconds in each) for name in each[0]}

    @cached_property
    def _single(self) -> Chunk:
        """Cached chunk of one conformation, without profiling."""
        return self._chunks(1, False, True)[0]

    @cached_property
    def _in_place(self) -> Staging | None:
        """Memory of the passes if the host shares it, otherwise None."""
        arrays = self.passes.host_arrays
        return None if arrays is None else Staging(*arrays)

    def _chunks(self, m: int, profile: bool, is_quiet: bool) -> list[Chunk]:
        """Divide m conformations into chunks. is_quiet : whether no progress is reported"""
        batch, firsts, queue = self.batch, range(0, m, self.batch), self.passes.queue
        if m <= min(batch, self.passes.most_uncut) and is_quiet and not profile and self._in_place:
            return [Chunk(slice(0, m), self._plain, self._in_place)]
        while len(self._staging) < len(firsts[:UNDER_WAY]):
            positions = queue.host_array((batch, 3 * len(self.atoms)), self.passes.encoding.dtype)
            self._staging.append(Staging(positions, queue.host_array((batch, self.passes.n_results))))
        return [
            Chunk(slice(first, min(first + batch, m)), self._queue(True) if profile else self._plain, staging)
            for first, staging in zip(firsts, cycle(self._staging), strict=False)
        ]

    def _start(
        self, chunk: Chunk, conformations: NDArray[Any], failures: Failures, tell: Progress | None = None
    ) -> None:
        """Encode a chunk and start computing it."""
        staging, count = chunk.staging, chunk.part.stop - chunk.part.start
        if staging.events:  # of an interrupted evaluation
            chunk.queue.wait(staging.events[-1])
        positions = staging.positions[:count]
        self.passes.encode(conformations, chunk.part, positions, failures)
        staging.events = self.passes.start(chunk.queue, positions, staging.results[:count], tell)

    def _collect(self, chunk: Chunk, conformations: NDArray[Any], found: Outputs, failures: Failures) -> None:
        """Wait for a chunk and unpack its results."""
        part, staging = chunk.part, chunk.staging
        chunk.queue.wait(staging.events[-1])
        staging.events = ()
        results = staging.results[: part.stop - part.start]
        self.passes.unpack_and_check(results, part, conformations, found, failures, self._reason)
        if failures.reasons:
            failures.check(part.stop)

    def _reason(self, positions: NDArray[Any], found: Outputs, k: int) -> InputError:
        return reason_of(self.atoms, positions, found, k, self._explain)
