"""Conformations to the device and back, in chunks: while it computes one, the host takes care of two others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..common.threads import LEAST, by_rows, in_parts
from ..common.variant import Progress
from .conformations import TooWideError, check_span
from .evaluator import Evaluator, Failures, Outputs, untold
from .passes import Passes, norm2

if TYPE_CHECKING:
    from ..opencl.queue import Queue
    from ..opencl.transfers import Event

# Chunks under way at a time: one is encoded, one computed, one collected.
UNDER_WAY = 3

# The error of a conformation whose results are not finite, from its atoms and what was found of it.
Explain = Callable[[Atoms, Outputs, int], InputError]


@dataclass(eq=False)
class Staging:
    """Host memory of a chunk, which the device reads and fills by itself.

    positions : (batch, 3 n) encoded; results : (batch, n_results)
    events : to be kept while the device uses them; the last one says that all is done
    """

    positions: NDArray[Any]
    results: NDArray[Any]
    events: tuple[Event, ...] = ()


@dataclass(eq=False)
class Chunk:
    """Conformations that are computed together, the queue that computes them, and their host memory."""

    part: slice
    queue: Queue
    staging: Staging


class Pipeline(Evaluator):
    """Takes conformations of a molecule through passes, in chunks as large as their buffers are.

    movable : whether the energy stays the same where all atoms move together
    """

    def __init__(self, atoms: Atoms, passes: Passes, explain: Explain, movable: bool = True) -> None:
        self.atoms, self.passes, self._explain, self._movable = atoms, passes, explain, movable
        self.batch = passes.batch
        encoding = passes.encoding
        self._middle_less_base = np.tile(encoding.shift(*atoms.bounds()), len(atoms))[np.newaxis]
        # Offsets (batch, 3 n) that fixed-point numbers are made of; float64 offsets are written in place.
        self._offsets = np.empty((self.batch if encoding.is_fixed else 0, 3 * len(atoms)))
        own = norm2(atoms.positions.reshape(1, -1) - self._middle_less_base)
        self._squared_reach = 0.0 if encoding.is_fixed else encoding.reach * encoding.reach
        self._by_squares = own < self._squared_reach  # else no sum would tell that each coordinate is within reach
        self._staging: list[Staging] = []
        self._plain = self._queue(False)  # remembers nothing, and so serves all evaluations without times

    def _queue(self, profile: bool) -> Queue:
        """Make a queue of the device, with or without times."""
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
        chunks = self._chunks(len(conformations), profile)
        try:
            if len(chunks) == 1:
                self._start(chunks[0], conformations, failures, None if tell is untold else tell)
                self._collect(chunks[0], conformations, found, failures)
                tell(1.0)
            else:
                self._compute_several(chunks, conformations, found, failures, tell)
        except BaseException:
            chunks[0].queue.finish()  # nothing may run on when the next evaluation begins
            raise
        return self._seconds(chunks) if profile else {}

    def repeat(self, count: int) -> None:
        """Launch the passes so many times over, for the first conformation that lies on the device."""
        queue = self._queue(False)
        for _ in range(count):
            self.passes.launch(queue, 1)
        queue.finish()

    def _compute_several(
        self, chunks: list[Chunk], conformations: NDArray[Any], found: Outputs, failures: Failures, tell: Progress
    ) -> None:
        """Keep as many chunks under way as may be; a second thread collects."""

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
        """Chunk of one conformation without times, which is kept."""
        return self._chunks(1, False)[0]

    def _chunks(self, m: int, profile: bool) -> list[Chunk]:
        batch, firsts, queue = self.batch, range(0, m, self.batch), self.passes.queue
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
        """Encode a chunk and give it to the device."""
        staging, count = chunk.staging, chunk.part.stop - chunk.part.start
        positions = staging.positions[:count]
        self.encode(conformations, chunk.part, positions, failures)
        staging.events = self.passes.start(chunk.queue, positions, staging.results[:count], tell)

    def encode(self, conformations: NDArray[Any], part: slice, encoded: NDArray[Any], failures: Failures) -> None:
        """Encode positions for the passes: from the molecule's middle, or out of its reach from their own."""
        encoding = self.passes.encoding
        # Offsets from the middle, with `base` added. In float64 they are what is sent, and are written in place.
        offsets = self._offsets[: len(encoded)] if encoding.is_fixed else encoded
        given = conformations[part].reshape(offsets.shape)
        if offsets.shape[1] < LEAST:
            np.subtract(given, self._middle_less_base, out=offsets)
            squares = norm2(offsets) if self._by_squares else np.inf
        else:
            squares = self._offsets_in_parts(given, offsets)
        # Each coordinate is within reach if the root of all squares is. With NaN neither is true.
        if not squares < self._squared_reach:
            self._put_within_reach(conformations, part, offsets, failures)
        if encoding.is_fixed:
            encoding.encode(offsets, encoded)

    def _put_within_reach(
        self, conformations: NDArray[Any], part: slice, offsets: NDArray[Any], failures: Failures
    ) -> None:
        """Write again the offsets (m, 3 n) of conformations that reach too far, from their own middle.

        Conformations that cannot be go to `failures`, and get the offsets of the molecule's own positions.
        """
        encoding = self.passes.encoding
        lowest, highest = encoding.base - encoding.reach, encoding.base + encoding.reach
        least, most = np.minimum.reduce(offsets, axis=None), np.maximum.reduce(offsets, axis=None)
        if least >= lowest and most <= highest:  # neither is true of NaN
            return
        within = (offsets.min(axis=1) >= lowest) & (offsets.max(axis=1) <= highest)
        for k in np.flatnonzero(~within).tolist():
            try:
                offsets[k] = self._from_own_middle(conformations[part.start + k]) + encoding.base
            except InputError as error:
                failures.add(part.start + k, error)
                # Something has to be computed.
                offsets[k] = self.atoms.positions.ravel() - self._middle_less_base[0]

    def _offsets_in_parts(self, given: NDArray[Any], offsets: NDArray[Any]) -> float:
        """Fill the offsets of many positions. Returns the sum of their squares, or infinity if it is of no use."""

        def fill(columns: slice) -> float:
            of_part = self._middle_less_base[:, : columns.stop - columns.start]  # the same three for every atom
            filled = np.subtract(given[:, columns], of_part, out=offsets[:, columns])
            return norm2(filled) if self._by_squares else np.inf

        return sum(in_parts(offsets.shape[1], fill))

    def decode(self, encoded: NDArray[Any]) -> Floats:
        """Positions (m, n, 3) A from the encoded ones of the passes, (m, 3 n), counted from the molecule's middle."""
        encoding = self.passes.encoding
        decoded = self.passes.queue.device.results.array(encoded.shape, np.float64)
        middle = self._middle_less_base[:, : encoded.shape[1]] + encoding.base

        def decode(rows: slice) -> None:
            scaled = encoded[rows] * encoding.step if encoding.step != 1 else encoded[rows]
            np.add(scaled, middle, out=decoded[rows])

        if encoded.size < LEAST:
            decode(slice(0, len(encoded)))
        else:
            by_rows(len(encoded), encoded.shape[1], decode)
        return decoded.reshape(len(encoded), -1, 3)

    def _from_own_middle(self, positions: NDArray[Any]) -> Floats:
        """Take positions (n, 3) as (3 n) from their middle. Raises InputError if no molecule has them."""
        columns = np.ascontiguousarray(positions.T, np.float64)
        lowest, highest = columns.min(axis=1), columns.max(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            span = float((highest - lowest).max())
        if not np.isfinite(span):
            self.atoms.moved(positions)  # names the atom
        check_span(positions)
        if not self._movable:
            raise InputError(
                "the positions lie too far from the molecule's own, to which terms of the energy hold them"
            )
        if span / 2 > self.passes.encoding.reach:
            raise TooWideError(
                f"the positions span {span:,.0f} A, far more than the molecule's own; make the plan from atoms that "
                "span as much, or use float64"
            )
        offsets: Floats = (positions - (lowest / 2 + highest / 2)).ravel()  # the sum may overflow
        return offsets

    def _collect(self, chunk: Chunk, conformations: NDArray[Any], found: Outputs, failures: Failures) -> None:
        """Wait for a chunk and put its results where they belong."""
        part, staging = chunk.part, chunk.staging
        chunk.queue.wait(staging.events[-1])
        staging.events = ()
        self.unpack_and_check(staging.results[: part.stop - part.start], part, conformations, found, failures)
        if failures.reasons:
            failures.check(part.stop)

    def unpack_and_check(
        self, results: NDArray[Any], part: slice, conformations: NDArray[Any], found: Outputs, failures: Failures
    ) -> None:
        """Put the results (m, n_results) of part `part` of the conformations where they belong; explain bad ones."""
        self.passes.unpack(results, part, found)
        if not self.passes.is_plausible(results, part, found):
            for k in range(part.start, part.stop):
                if k not in failures.reasons and not found.is_good(k):
                    failures.add(k, self._reason(conformations[k], found, k))

    def _reason(self, positions: NDArray[Any], found: Outputs, k: int) -> InputError:
        """Explain a conformation that overflowed or never had a value."""
        try:
            atoms = self.atoms.moved(positions)
            atoms.require_apart()
        except InputError as error:
            return error
        return self._explain(atoms, found, k)
