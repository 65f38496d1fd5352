"""Conformations to the device and back, in chunks: while it computes one, the host takes care of two others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..errors import InputError
from ..solvent.checks import LARGEST_SPAN, check_span
from ..variant import Progress
from .passes import Options, Passes
from .result import TERMS
from .tables import Fixed

if TYPE_CHECKING:
    from ..opencl.kernels import Run

# Atoms of all conformations in a chunk: enough to fill any device, few enough for the host's caches.
CHUNK_ATOMS = 1 << 17

# Chunks under way at a time: one is encoded, one computed, one collected.
UNDER_WAY = 3


@dataclass(frozen=True, eq=False)
class Found:
    """Of m conformations: energies (m, 5), Born radii (m, n), gradients (m, n, 3), energies by atom (m, n, 5)."""

    energies: Floats
    born_radii: Floats
    gradients: Floats | None
    per_atom: Floats | None

    @classmethod
    def empty(cls, m: int, n: int, options: Options) -> Found:
        """Arrays to be filled."""
        return cls(
            np.empty((m, len(TERMS))),
            np.empty((m, n)),
            np.empty((m, n, 3)) if options.gradient else None,
            np.empty((m, n, len(TERMS))) if options.per_atom else None,
        )


@dataclass(eq=False)
class Slot:
    """Host memory of a chunk: encoded positions (batch, n, 3), and results as Passes has them (batch, n_results).

    events : to be kept while the device uses them; the last one says that all is done
    """

    positions: NDArray[Any]
    results: NDArray[Any]
    events: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Chunk:
    """Conformations that are computed together, what runs them, and where they are on the host."""

    part: slice
    run: Run
    slot: Slot


@dataclass(eq=False)
class Pipeline:
    """Takes conformations of a molecule through the passes, in chunks as large as their buffers are."""

    atoms: Atoms
    fixed: Fixed
    passes: Passes
    _slots: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        lowest, highest = self.atoms.bounds()
        self._middles = np.tile((lowest + highest) / 2, len(self.atoms))
        self._offsets = np.empty((self.batch, 3 * len(self.atoms)))

    @property
    def batch(self) -> int:
        """How many conformations a chunk may have."""
        return self.passes.batch

    def compute(self, conformations: NDArray[Any], profile: bool, tell: Progress) -> tuple[Found, float]:
        """What is found for all conformations (m, n, 3), and where times are wanted the kernels' seconds.

        Raises InputError for positions that no molecule has, and for results that overflow.
        """
        m = len(conformations)
        found = Found.empty(m, len(self.atoms), self.passes.options)
        chunks = self._chunks(m, profile)

        def collect(chunk: Chunk) -> float:
            self._collect(chunk, conformations, found)
            share: float = chunk.part.stop / m
            return share

        try:
            if len(chunks) == 1:
                self._start(chunks[0], conformations)
                tell(collect(chunks[0]))
            else:
                self._compute_several(chunks, conformations, collect, tell)
        except BaseException:
            chunks[0].run.finish()  # nothing may run on when the next evaluation begins
            raise
        return found, sum(chunk.run.elapsed_seconds for chunk in chunks) if profile else 0.0

    def _compute_several(
        self, chunks: list[Chunk], conformations: NDArray[Any], collect: Callable[[Chunk], float], tell: Progress
    ) -> None:
        """As many chunks under way as may be; a second thread collects."""
        with ThreadPoolExecutor(1) as second:
            under_way: deque[Future[float]] = deque()
            for chunk in chunks:
                if len(under_way) == UNDER_WAY:
                    tell(under_way.popleft().result())
                self._start(chunk, conformations)
                under_way.append(second.submit(collect, chunk))
            while under_way:
                tell(under_way.popleft().result())

    def repeat(self, count: int) -> None:
        """The passes so many times over, of the first conformation that lies on the device."""
        run = self.passes.run.anew(False)
        for _ in range(count):
            run.launch_kept(self.passes.launches, 1)
        run.finish()

    def _chunks(self, m: int, profile: bool) -> list[Chunk]:
        firsts = range(0, m, self.batch)
        while len(self._slots) < min(UNDER_WAY, len(firsts)):
            positions = self.passes.run.host_array((self.batch, 3 * len(self.atoms)), self.passes.place_type)
            self._slots.append(Slot(positions, self.passes.run.host_array((self.batch, self.passes.n_results))))
        return [
            Chunk(slice(first, min(first + self.batch, m)), self.passes.run.anew(profile), self._slots[k % UNDER_WAY])
            for k, first in enumerate(firsts)
        ]

    def _start(self, chunk: Chunk, conformations: NDArray[Any]) -> None:
        """Encode a chunk and give it to the device."""
        slot, count = chunk.slot, chunk.part.stop - chunk.part.start
        self._encode(conformations, chunk.part, slot.positions[:count])
        slot.events = self.passes.start(chunk.run, slot.positions[:count], slot.results[:count])

    def _encode(self, conformations: NDArray[Any], part: slice, encoded: NDArray[Any]) -> None:
        """Positions as the device takes them: from the molecule's middle, those out of reach of it from their own."""
        offsets, reach = self._offsets[: len(encoded)], min(self.fixed.reach, LARGEST_SPAN / 2)
        np.subtract(conformations[part].reshape(offsets.shape), self._middles, out=offsets)
        if not (offsets.min() >= -reach and offsets.max() <= reach):  # neither is true of NaN
            near = (offsets.min(axis=1) >= -reach) & (offsets.max(axis=1) <= reach)
            for k in np.flatnonzero(~near).tolist():
                with _telling_which(part.start + k, len(conformations)):
                    offsets[k] = self._from_own_middle(conformations[part.start + k])
        if encoded.dtype == offsets.dtype:
            np.copyto(encoded, offsets)
        else:
            offsets += self.fixed.base
            np.copyto(encoded, offsets.view(np.int64), casting="unsafe")  # the low 32 bits

    def _from_own_middle(self, positions: NDArray[Any]) -> Floats:
        """Positions (n, 3) as (3 n) from their middle. Raises InputError for those that no molecule has."""
        columns = np.ascontiguousarray(positions.T, np.float64)
        lowest, highest = columns.min(axis=1), columns.max(axis=1)
        span = float((highest - lowest).max())
        if not np.isfinite(span):
            self.atoms.moved(positions)  # names the atom
        if span / 2 > self.fixed.reach:
            raise InputError(
                f"the positions span {span:,.0f} A, far more than the molecule's own; make the Energy of atoms that "
                "span as much, or use float64"
            )
        check_span(positions)
        offsets: Floats = (positions - (lowest + highest) / 2).ravel()
        return offsets

    def _collect(self, chunk: Chunk, conformations: NDArray[Any], found: Found) -> None:
        """Wait for a chunk and put what it found where it belongs."""
        part, slot = chunk.part, chunk.slot
        chunk.run.wait(slot.events[-1])
        slot.events = ()
        results = slot.results[: part.stop - part.start]
        energies, radii, slopes = self.passes.taken_apart(results)
        by_part = energies.astype(np.float64)
        by_part.sum(axis=1, out=found.energies[part])
        found.born_radii[part] = radii
        if found.gradients is not None:
            found.gradients[part] = slopes
        if found.per_atom is not None:
            found.per_atom[part] = by_part
        # None of the three is true where anything is NaN.
        if not (results.min() > -np.inf and results.max() < np.inf and radii.min() > 0):
            self._refuse(conformations, part, found)

    def _refuse(self, conformations: NDArray[Any], part: slice, found: Found) -> None:
        """Raise InputError for what overflowed or never had a value, with the atoms that are the cause."""
        good = np.isfinite(found.born_radii[part]) & (found.born_radii[part] > 0)
        if found.gradients is not None:
            good &= np.isfinite(found.gradients[part]).all(axis=2)
        k = int(np.argmin(good.all(axis=1) & np.isfinite(found.energies[part]).all(axis=1)))
        where = "" if good[k].all() else f"of {self.atoms.describe(int(np.argmin(good[k])))} "
        precision = self.passes.run.precision
        precise = "" if precision == "float64" else ", or use float64"
        with _telling_which(part.start + k, len(conformations)):
            self.atoms.moved(conformations[part.start + k]).require_apart()
            raise InputError(
                f"the energy {where}is too large for {precision}; check for atoms on top of each other, radii and "
                f"charges{precise}"
            )


@contextmanager
def _telling_which(k: int, m: int) -> Iterator[None]:
    """Let errors say which one of m conformations they are about."""
    try:
        yield
    except InputError as error:
        which = "" if m == 1 else f"conformation {k + 1} of {m}: "
        raise InputError(f"{which}{error}") from None
