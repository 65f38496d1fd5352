"""Kernels with their arguments and buffers: the launches of one evaluation."""

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

# Largest size of the buffers for a batch of conformations, in bytes, unless a single conformation needs more.
BATCH_BYTES = 1 << 30

# Conformations in one launch, along the third dimension; the limit of CUDA devices.
MOST_CONFORMATIONS = 65_535

# Length up to which BLAS uses one thread; for more it starts its own threads, which spin while they wait.
_BLOCK = 8192
_MOST_BLOCKS = 16  # of larger arrays, parts are summed by threads

# Makes the error of a conformation with non-finite results, from the atoms, the results and the index.
Explain = Callable[[Atoms, Outputs, int], InputError]


class Passes(ABC):
    """Launches of one evaluation, in order, with transfers of positions and results.

    Between launches nothing is transferred to the host.

    queue : makes arrays and binds launches: a queue, which can also run them, or a recorder for rows
    batch : conformations computed together; most_at_once : the largest possible batch
    n_results : reals per conformation that the host reads
    buffers : by name, including "positions" (batch, 3 n) and "results" (batch, n_results)
    movable : whether the energy is invariant to translation
    uncut, most_uncut : launches that can be enqueued together, for up to this many conformations
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
        self._by_squares = own < self._squared_reach  # else sums of squares do not show if coordinates are in range

    def allocate(
        self, sizes: Mapping[str, int], most: int, types: Mapping[str, np.dtype[Any]] | None = None
    ) -> None:  # fmt: skip
        """Allocate buffers for up to `most` conformations.

        sizes : reals per conformation in each buffer, including "results"
        types : data types of buffers that do not hold reals, of the same size as a real
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
        """Slices of the launches that are timed separately, by name."""
        return {}

    def start(
        self, queue: Queue, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> Sequence[Event]:
        """Write encoded positions (m, 3 n), run all passes, and read results (m, n_results), asynchronously.

        tell : called with the fraction done, if launches are long enough to be divided

        Returns events to keep; the last one signals the end.
        """
        if not queue.profile and tell is None and len(positions) <= self.most_uncut:
            source, launches, target = self._straight
            return queue.write_launch_read(source, positions, launches, target, results)
        read = queue.start_write(self.buffer("positions"), positions)
        self.launch(queue, len(positions), tell)
        return read, queue.start_read(results, self.buffer("results"))

    @cached_property
    def host_arrays(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Positions (batch, 3 n) and results (batch, n_results) in memory shared with the host; None if not shared."""
        positions, results = self.buffer("positions").host, self.buffer("results").host
        if positions is None or results is None:
            return None
        return positions.reshape(self.batch, -1), results.reshape(self.batch, -1)

    @cached_property
    def _straight(self) -> tuple[Buffer, Sequence[BoundLaunch], Buffer]:
        """Buffer of positions, launches that can be enqueued together, and buffer of results."""
        return self.buffer("positions"), bound(self.uncut), self.buffer("results")

    @cached_property
    def _bound(self) -> Sequence[BoundLaunch]:
        return bound(self.launches)

    def launch(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        """Run all passes for the first n_conformations on the device."""
        queue.launch_bound(self._bound, n_conformations, tell)

    def buffer(self, name: str) -> Buffer:
        """Return a buffer on the device, of passes made with a queue."""
        from ..opencl.memory import Buffer

        buffer = self.buffers[name]
        assert isinstance(buffer, Buffer)
        return buffer

    def seconds(self, queue: Queue) -> Mapping[str, float]:
        """Seconds of a queue's kernels by name, including "kernel"."""
        return {name: queue.elapsed(part) for name, part in {"kernel": slice(None), **self.steps}.items()}

    @abstractmethod
    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        """Copy results (m, n_results) to part `part` of the outputs."""

    def unpack_and_check(
        self, results: NDArray[Any], part: slice, conformations: NDArray[Any], found: Outputs, failures: Failures,
        reason: Callable[[NDArray[Any], Outputs, int], InputError],
    ) -> None:  # fmt: skip
        """Unpack results (m, n_results) of part `part` of the conformations, and add failed ones to `failures`.

        reason : makes the error of a conformation from its positions, the outputs and its index
        """
        self.unpack(results, part, found)
        if not self.is_plausible(results, part, found):
            for k in range(part.start, part.stop):
                if k not in failures.reasons and not found.is_good(k):
                    failures.add(k, reason(conformations[k], found, k))

    def encode(self, conformations: NDArray[Any], part: slice, encoded: NDArray[Any], failures: Failures) -> None:
        """Encode positions relative to the molecule's centre, or to their own centre if they are out of range."""
        encoding = self.encoding
        # Offsets from the centre, with `base` added. As float64 they are the encoded positions, computed in place.
        offsets = self._offsets[: len(encoded)] if encoding.is_fixed else encoded
        given = conformations[part].reshape(offsets.shape)
        if offsets.shape[1] < LEAST:
            np.subtract(given, self._middle_less_base, out=offsets)
            squares = norm2(offsets) if self._by_squares else np.inf
        else:
            squares = self._offsets_in_parts(given, offsets)
        # The root of the sum of squares is an upper bound of each coordinate; NaN fails the comparison.
        if not squares < self._squared_reach:
            self._put_within_reach(conformations, part, offsets, failures)
        if encoding.is_fixed:
            encoding.encode(offsets, encoded)

    def encoded(
        self, positions: Floats, out: NDArray[Any] | None = None
    ) -> tuple[NDArray[Any], Floats, dict[int, str]]:
        """Encode positions (m, n, 3) A of separate structures.

        out : (m, 3 n), output array

        Returns encoded positions, (m, 3 n); offsets of the positions from those on the device, (m, 3) A; and reasons of
        failures by index. Failed structures are encoded with the molecule's positions.
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
        """Temporary offsets (batch, 3 n) for fixed-point encoding."""
        return np.empty((self.batch if self.encoding.is_fixed else 0, 3 * self.n_atoms))

    def _put_within_reach(
        self, conformations: NDArray[Any], part: slice, offsets: NDArray[Any], failures: Failures
    ) -> None:
        """Recompute the offsets (m, 3 n) of conformations out of range, relative to their own centre.

        Conformations that cannot be encoded are added to `failures`, and get the molecule's positions.
        """
        encoding = self.encoding
        lowest, highest = encoding.base - encoding.reach, encoding.base + encoding.reach
        least, most = np.minimum.reduce(offsets, axis=None), np.maximum.reduce(offsets, axis=None)
        if least >= lowest and most <= highest:  # both false for NaN
            return
        within = (offsets.min(axis=1) >= lowest) & (offsets.max(axis=1) <= highest)
        for k in np.flatnonzero(~within).tolist():
            try:
                offsets[k] = self._from_own_middle(conformations[part.start + k]) + encoding.base
            except InputError as error:
                failures.add(part.start + k, error)
                # A valid placeholder, since the kernels compute all conformations.
                offsets[k] = self.atoms.positions.ravel() - self._middle_less_base[0]

    def _offsets_in_parts(self, given: NDArray[Any], offsets: NDArray[Any]) -> float:
        """Compute offsets of many positions in threads. Returns the sum of their squares, or infinity if not used."""

        def fill(columns: slice) -> float:
            of_part = self._middle_less_base[:, : columns.stop - columns.start]  # repeats for every atom
            filled = np.subtract(given[:, columns], of_part, out=offsets[:, columns])
            return norm2(filled) if self._by_squares else np.inf

        return sum(in_parts(offsets.shape[1], fill))

    def decode(self, encoded: NDArray[Any]) -> Floats:
        """Decode positions (m, n, 3) A from encoded ones, (m, 3 n), relative to the molecule's centre."""
        encoding, is_small = self.encoding, encoded.size < LEAST  # small arrays are faster in new memory
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
        """Return offsets (3 n) of positions (n, 3) from their own centre. Raises InputError for invalid positions."""
        columns = np.ascontiguousarray(positions.T, np.float64)
        lowest, highest = columns.min(axis=1), columns.max(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            span = float((highest - lowest).max())
        if not np.isfinite(span):
            self.atoms.moved(positions)  # raises an error that names the atom
        check_span(positions)
        if not self.movable:
            raise InputError(
                "the positions are too far from those of the molecule, to which energy terms restrain them"
            )
        if span / 2 > self.encoding.reach:
            raise TooWideError(
                f"the positions span {span:,.0f} A, far more than those of the molecule; create the plan from atoms "
                "with this span, or use float64"
            )
        offsets: Floats = (positions - (lowest / 2 + highest / 2)).ravel()  # the sum may overflow
        return offsets

    def named(self, *names: str) -> dict[str, Array]:
        """Return buffers by the names of kernel parameters."""
        return {name: self.buffers[name] for name in names}

    def is_plausible(self, results: NDArray[Any], part: slice, found: Outputs) -> bool:
        """Return whether all results are finite and all Born radii positive."""
        if not math.isfinite(norm2(results)) and not np.isfinite(results).all():  # squares may overflow in float32
            return False
        return found.born_radii is None or bool(np.minimum.reduce(found.born_radii[part], axis=None) > 0)


def reason_of(atoms: Atoms, positions: NDArray[Any], found: Outputs, k: int, explain: Explain) -> InputError:
    """Return the error of conformation k, at positions (n, 3) A, with non-finite results."""
    try:
        moved = atoms.moved(positions)
        moved.require_apart()
    except InputError as error:
        return error
    return explain(moved, found, k)


def bound(launches: Sequence[Launch]) -> Sequence[BoundLaunch]:
    """Return launches that a queue has bound, after a check of their type."""
    from ..opencl.binding import BoundLaunch

    found = [launch for launch in launches if isinstance(launch, BoundLaunch)]
    assert len(found) == len(launches)
    return found


def norm2(values: NDArray[Any]) -> float:
    """Sum of squares, not finite if any value is not; three times faster than a check of each value."""
    if values.size <= _BLOCK:
        return float(np.vdot(values, values))  # unlike `dot` it does not warn of overflows
    if values.size <= _MOST_BLOCKS * _BLOCK:
        flat, found = values.ravel(), 0.0
        for first in range(0, len(flat), _BLOCK):
            block = flat[first : first + _BLOCK]
            found += float(np.vdot(block, block))
        return found
    return sum(in_parts(values.shape[-1], lambda columns: _norm2_of_many(values[..., columns].ravel())))


def _norm2_of_many(flat: NDArray[Any]) -> float:
    """Sum with one call, since threads that return to Python for each block wait for each other."""
    return float(np.einsum("i,i->", flat, flat))
