"""Kernels with their arguments and buffers: what a pipeline takes conformations through."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..common.threads import LEAST, by_rows, in_parts
from ..common.variant import Progress
from .conformations import Encoding, TooWideError, check_span
from .evaluator import Failures, Outputs

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder, BoundLaunch, Launch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Event, Queue

# Bytes that one batch of conformations may take on a device, unless one alone takes more.
BATCH_BYTES = 1 << 30

# Conformations in one launch, of which each is a layer of groups in the third dimension: CUDA's devices take so many.
MOST_CONFORMATIONS = 65_535

# Numbers that BLAS adds up in one thread: with more it starts its own, which wait for each other and spin meanwhile.
_BLOCK = 8192

# The error of a conformation whose results are not finite, from its atoms and what was found of it.
Explain = Callable[[Atoms, Outputs, int], InputError]


class Passes(ABC):
    """Launches of one evaluation, in order, and how positions go to them and results come from them.

    Nothing comes back to the host between launches.

    queue : what makes the arrays and binds the launches: a queue, in which they can be launched, or the record of a row
    batch : conformations that are computed together; most_at_once : what it could be at most
    n_results : reals of a conformation that the host reads
    buffers : by name; "positions" (batch, 3 n) and "results" (batch, n_results) among them
    movable : whether the energy stays the same where all atoms move together
    uncut, most_uncut : launches that may follow one another at once, for up to so many conformations
    """

    launches: Sequence[Launch]
    uncut: Sequence[Launch] = ()
    most_uncut: int = 0
    movable: bool = True

    def __init__(self, queue: Binder, encoding: Encoding, atoms: Atoms) -> None:
        self.queue, self.encoding, self.atoms, self.n_atoms = queue, encoding, atoms, len(atoms)
        self.buffers: dict[str, Array] = {}
        self._middle_less_base = np.tile(encoding.shift(*atoms.bounds()), len(atoms))[np.newaxis]
        own = norm2(atoms.positions.reshape(1, -1) - self._middle_less_base)
        self._squared_reach = 0.0 if encoding.is_fixed else encoding.reach * encoding.reach
        self._by_squares = own < self._squared_reach  # else no sum would tell that each coordinate is within reach

    def allocate(
        self, sizes: Mapping[str, int], most: int, types: Mapping[str, np.dtype[Any]] | None = None
    ) -> None:  # fmt: skip
        """Make buffers for up to `most` conformations.

        sizes : reals of one conformation in each buffer; "results" must be among them
        types : of buffers that hold other numbers, of the size of a real
        """
        queue, n_atoms, encoding = self.queue, self.n_atoms, self.encoding
        self.n_results = sizes["results"]
        bytes_each = sum(sizes.values()) * queue.dtype.itemsize
        fit_in_buffer = queue.device.largest_buffer // (max(sizes.values()) * queue.dtype.itemsize)
        fit = min(MOST_CONFORMATIONS, BATCH_BYTES // bytes_each, fit_in_buffer)
        self.most_at_once = max(1, fit)
        self.batch = min(most, self.most_at_once)
        kinds = types or {}
        for name, size in sizes.items():
            make = queue.in_common if name == "results" else queue.empty
            self.buffers[name] = make(self.batch * size, kinds.get(name))
        self.buffers["positions"] = queue.in_common(self.batch * 3 * n_atoms, encoding.dtype)

    @property
    def steps(self) -> Mapping[str, slice]:
        """Launches that are timed separately, by name."""
        return {}

    def start(
        self, queue: Queue, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> Sequence[Event]:
        """Have the device read encoded positions (m, 3 n), make all passes, and fill results (m, n_results).

        tell : called with the fraction done, where launches are so long that they come in parts

        Returns events to keep; when the last one has come all is done.
        """
        if not queue.profile and tell is None and len(positions) <= self.most_uncut:
            source, launches, target = self._straight
            return queue.through(source, positions, launches, target, results)
        read = queue.start_write(self.buffer("positions"), positions)
        self.launch(queue, len(positions), tell)
        return read, queue.start_read(results, self.buffer("results"))

    @cached_property
    def host_arrays(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Positions (batch, 3 n) and results (batch, n_results) in memory that the host shares; None if it does not."""
        positions, results = self.buffer("positions").host, self.buffer("results").host
        if positions is None or results is None:
            return None
        return positions.reshape(self.batch, -1), results.reshape(self.batch, -1)

    @cached_property
    def _straight(self) -> tuple[Buffer, Sequence[BoundLaunch], Buffer]:
        """Where positions go, launches that may follow one another, and where results are."""
        return self.buffer("positions"), bound(self.uncut), self.buffer("results")

    @cached_property
    def _bound(self) -> Sequence[BoundLaunch]:
        return bound(self.launches)

    def launch(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        """Make all passes for the first n_conformations on the device."""
        queue.launch_bound(self._bound, n_conformations, tell)

    def buffer(self, name: str) -> Buffer:
        """Return a buffer on the device, of passes that a queue made."""
        from ..opencl.memory import Buffer

        buffer = self.buffers[name]
        assert isinstance(buffer, Buffer)
        return buffer

    def seconds(self, queue: Queue) -> Mapping[str, float]:
        """Seconds of a queue's kernels by name, "kernel" among them."""
        return {name: queue.elapsed(part) for name, part in {"kernel": slice(None), **self.steps}.items()}

    @abstractmethod
    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        """Write results (m, n_results) where they belong: in part `part` of what is found."""

    def unpack_and_check(
        self, results: NDArray[Any], part: slice, conformations: NDArray[Any], found: Outputs, failures: Failures,
        reason: Callable[[NDArray[Any], Outputs, int], InputError],
    ) -> None:  # fmt: skip
        """Put the results (m, n_results) of part `part` of the conformations where they belong; explain bad ones.

        reason : gives the error of a conformation from its positions, what was found of all, and its number
        """
        self.unpack(results, part, found)
        if not self.is_plausible(results, part, found):
            for k in range(part.start, part.stop):
                if k not in failures.reasons and not found.is_good(k):
                    failures.add(k, reason(conformations[k], found, k))

    def encode(self, conformations: NDArray[Any], part: slice, encoded: NDArray[Any], failures: Failures) -> None:
        """Encode positions for the passes: from the molecule's middle, or out of its reach from their own."""
        encoding = self.encoding
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

    def encoded(
        self, positions: Floats, out: NDArray[Any] | None = None
    ) -> tuple[NDArray[Any], Floats, dict[int, str]]:
        """Encode positions (m, n, 3) A of structures that are one by one.

        out : (m, 3 n) to be filled

        Returns them, (m, 3 n); how far each is from where it is computed, (m, 3) A; and why some cannot be, by their
        numbers, which are encoded as the molecule itself.
        """
        encoding = self.encoding
        failures, start = Failures(len(positions), record=True), np.asarray(positions, np.float64)
        found = np.empty((len(start), start[0].size), encoding.dtype) if out is None else out
        if encoding.is_fixed:
            for k in range(len(start)):
                self.encode(start, slice(k, k + 1), found[k : k + 1], failures)
        else:
            by_rows(len(found), found.shape[1], lambda rows: self.encode(start, rows, found[rows], failures))
        offsets = np.nan_to_num(start[:, 0] - self.decode(found[:, :3])[:, 0])
        offsets[np.abs(offsets).max(axis=1) <= encoding.step] = 0
        offsets[list(failures.reasons)] = 0
        return found, offsets, failures.in_order

    @cached_property
    def _offsets(self) -> Floats:
        """Offsets (batch, 3 n) that fixed-point numbers are made of; float64 offsets are written in place."""
        return np.empty((self.batch if self.encoding.is_fixed else 0, 3 * self.n_atoms))

    def _put_within_reach(
        self, conformations: NDArray[Any], part: slice, offsets: NDArray[Any], failures: Failures
    ) -> None:
        """Write again the offsets (m, 3 n) of conformations that reach too far, from their own middle.

        Conformations that cannot be go to `failures`, and get the offsets of the molecule's own positions.
        """
        encoding = self.encoding
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
        encoding, is_small = self.encoding, encoded.size < LEAST  # few numbers are faster in new memory
        decoded = np.empty(encoded.shape) if is_small else self.queue.device.results.array(encoded.shape, np.float64)
        middle = self._middle_less_base[:, : encoded.shape[1]] + encoding.base

        def decode(rows: slice) -> None:
            scaled = encoded[rows] * encoding.step if encoding.step != 1 else encoded[rows]
            np.add(scaled, middle, out=decoded[rows])

        if is_small:
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
        if not self.movable:
            raise InputError(
                "the positions lie too far from the molecule's own, to which terms of the energy hold them"
            )
        if span / 2 > self.encoding.reach:
            raise TooWideError(
                f"the positions span {span:,.0f} A, far more than the molecule's own; make the plan from atoms that "
                "span as much, or use float64"
            )
        offsets: Floats = (positions - (lowest / 2 + highest / 2)).ravel()  # the sum may overflow
        return offsets

    def named(self, *names: str) -> dict[str, Array]:
        """Choose buffers, for kernels whose parameters have the same names."""
        return {name: self.buffers[name] for name in names}

    def is_plausible(self, results: NDArray[Any], part: slice, found: Outputs) -> bool:
        """Return whether all results are finite and all Born radii positive."""
        if not math.isfinite(norm2(results)) and not np.isfinite(results).all():  # large ones have no float32 square
            return False
        return found.born_radii is None or bool(np.minimum.reduce(found.born_radii[part], axis=None) > 0)


def reason_of(atoms: Atoms, positions: NDArray[Any], found: Outputs, k: int, explain: Explain) -> InputError:
    """Explain conformation k, at positions (n, 3) A, which overflowed or never had a value."""
    try:
        moved = atoms.moved(positions)
        moved.require_apart()
    except InputError as error:
        return error
    return explain(moved, found, k)


def bound(launches: Sequence[Launch]) -> Sequence[BoundLaunch]:
    """Return launches that a queue bound as what they are, so that it can launch them."""
    from ..opencl.binding import BoundLaunch

    found = [launch for launch in launches if isinstance(launch, BoundLaunch)]
    assert len(found) == len(launches)
    return found


def norm2(values: NDArray[Any]) -> float:
    """Sum all squares, in a third of the time of a look at each number; not finite if one is not."""
    if values.size <= _BLOCK:
        return float(np.vdot(values, values))  # unlike `dot` it does not warn of overflows
    return sum(in_parts(values.shape[-1], lambda columns: _norm2_of_many(values[..., columns].ravel())))


def _norm2_of_many(flat: NDArray[Any]) -> float:
    """Sum by one call: threads that come back to Python for each block wait for each other."""
    return float(np.einsum("i,i->", flat, flat))
