"""A molecule recorded for a device; launches for structures of many molecules: tables of arguments, lists of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.threads import by_rows
from ...plan.evaluator import Failures
from ...plan.pipeline import Pipeline
from .. import Energy, EnergyBatch
from ..passes import EnergyPasses
from .scales import ScaledParameters

if TYPE_CHECKING:
    from ...opencl.binding import BoundLaunch, Launch
    from ...opencl.kernel import Argument
    from ...opencl.queue import Queue
    from ...opencl.recording import ArgumentRow, BufferPiece, RecordedLaunch, Region
    from .store import Store

Begins = Sequence["np.uint64 | NDArray[np.uint64]"]


class System:
    """Molecule whose structures share launches with other molecules.

    energy : its plan; passes : the launches of an evaluation, recorded
    """

    def __init__(self, energy: Energy, *, is_alone: bool = False, is_scaled: bool = False) -> None:
        """is_alone : if it has one structure, and there are no other molecules; is_scaled : if rows scale parameters

        Raises InputError if parameters cannot be scaled.
        """
        from ...opencl.recording import Recorder

        self.recorder = Recorder(energy.device, energy.precision, is_shared=not is_alone)
        self.recorder.owns_parameters = is_scaled
        self._pieces: dict[str, BufferPiece] = {}  # by name, as they were asked for
        self.energy, self.pipeline = energy, energy._prepared(self.recorder, 1)
        passes = self.pipeline.passes
        assert isinstance(passes, EnergyPasses)
        self.passes = passes
        self.scaled = ScaledParameters(passes, self.recorder) if is_scaled else None

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        """Return all launches, each once, in an order that is the same for molecules with the same key."""
        found, options = [*self.passes.launches], self.passes.options
        if options.gradient and not options.chain:  # radii may stay as they are
            apart = self.passes.apart_at_radii
            found += [*apart[0], *apart[1]]
        return self.recorder.recorded(found)

    @cached_property
    def at_radii(self) -> list[Launch]:
        """Launches of an evaluation at the Born radii of the one before; none if gradients do not hold radii."""
        holds = self.energy.holds_radii and self.passes.contents.has_gb
        return self.passes.apart_at_radii[1] if holds else []

    @cached_property
    def rows(self) -> list[ArgumentRow]:
        """Return the arguments of all launches."""
        _ = self.shared, self.own  # which lay out the arrays
        return [launch.row(self.recorder.slot) for launch in self.launches]

    @cached_property
    def key(self) -> Hashable:
        """Return a key that is equal for molecules that can share all launches."""
        return key_of(self.launches)

    @property
    def shared(self) -> Region:
        """Bytes that its structures share."""
        _ = self.launches
        return self.recorder.shared

    @property
    def own(self) -> Region:
        """Bytes of each structure."""
        _ = self.launches
        return self.recorder.own

    def piece(self, name: str) -> BufferPiece:
        """Return where a structure keeps a buffer of the passes."""
        if name not in self._pieces:
            self._pieces[name] = self.recorder.piece(self.passes.buffers[name])
        return self._pieces[name]

    @cached_property
    def origin(self) -> Floats:
        """(3,) A from which positions on the device are counted."""
        nowhere = np.zeros((1, 3 * len(self.energy.atoms)), self.passes.encoding.dtype)
        origin: Floats = self.pipeline.decode(nowhere)[0, 0]
        return origin

    def encoded(
        self, positions: Floats, out: NDArray[Any] | None = None
    ) -> tuple[NDArray[Any], Floats, dict[int, str]]:
        """Encode positions (m, n, 3) A of structures, as `encoded` does."""
        return encoded(self.pipeline, positions, out)

    def energies(self, results: NDArray[Any], positions: Sequence[Floats] | Floats) -> EnergyBatch:
        """Return the energies in results (m, n_results) of positions (m, n, 3) A; errors are recorded."""
        return self.energy._batch_of(self.pipeline, results, np.asarray(positions))


def encoded(
    pipeline: Pipeline, positions: Floats, out: NDArray[Any] | None = None
) -> tuple[NDArray[Any], Floats, dict[int, str]]:
    """Encode positions (m, n, 3) A of structures as passes take them.

    out : (m, 3 n) to be filled

    Returns them, (m, 3 n); how far each is from where it is computed, (m, 3) A; and why some cannot be, by their
    numbers, which are encoded as the molecule itself.
    """
    encoding = pipeline.passes.encoding
    failures, start = Failures(len(positions), record=True), np.asarray(positions, np.float64)
    found = np.empty((len(start), start[0].size), encoding.dtype) if out is None else out
    if encoding.is_fixed:
        for k in range(len(start)):
            pipeline.encode(start, slice(k, k + 1), found[k : k + 1], failures)
    else:
        by_rows(len(found), found.shape[1], lambda rows: pipeline.encode(start, rows, found[rows], failures))
    offsets = np.nan_to_num(start[:, 0] - pipeline.decode(found[:, :3])[:, 0])
    offsets[np.abs(offsets).max(axis=1) <= encoding.step] = 0
    offsets[list(failures.reasons)] = 0
    return found, offsets, failures.in_order


def key_of(launches: Sequence[RecordedLaunch]) -> Hashable:
    """Return a key that is equal for molecules whose launches can be merged."""
    return tuple(launch.key for launch in launches)


class Tables:
    """Launches of structures whose molecules have one key, each with a table of arguments.

    A structure has a slot of the tables. The list of rows says which slots are launched, and in which order.
    """

    def __init__(
        self, queue: Queue, stores: Sequence[Store], launches: Sequence[RecordedLaunch], rows: Sequence[ArgumentRow],
        capacity: int,
    ) -> None:  # fmt: skip
        """launches, rows : of any molecule with the key; stores : where their arrays are; capacity : slots"""
        from ...opencl.binding import BoundLaunch

        self._queue = queue
        self._firsts = np.cumsum([0, *(len(row.values) for row in rows)])
        self._row_bytes = int(self._firsts[-1])
        self._values = np.zeros((capacity, self._row_bytes), np.uint8)
        self._shapes = np.zeros((len(rows), capacity, 2), np.int64)
        self._table = queue.empty(self._values.size, np.uint8)
        self._list = queue.empty(capacity, np.int32)
        self._changed = [0, 0]  # slots between which the device's table is old
        self._bound: list[BoundLaunch] = []
        self._numbers = {id(launch): k for k, launch in enumerate(launches)}
        for k, launch in enumerate(launches):
            first = np.int32(self._firsts[k])
            args: list[Argument] = [self._table, np.int32(self._row_bytes), first, self._list]
            args += [stores[arg.store].buffer for arg in launch.pieces]
            self._bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, tuple(args)))

    def put(self, slots: NDArray[np.intp], rows: Sequence[ArgumentRow], begins: Begins) -> None:
        """Return slots to structures of one molecule.

        begins : bytes of the stores at which regions begin, one or of each slot, as numbered by `BufferPiece.region`
        """
        for k, row in enumerate(rows):
            values = np.tile(row.values.view(np.uint64), (len(slots), 1))
            for places, begin in zip(row.places, begins, strict=False):
                values[:, places] += begin if isinstance(begin, np.uint64) else begin[:, None]
            self._values[slots, self._firsts[k] : self._firsts[k + 1]] = values.view(np.uint8)
            self._shapes[k, slots] = row.shape
        first, end = self._changed
        least, most = int(slots.min()), int(slots.max()) + 1
        self._changed = [min(first, least), max(end, most)] if end > first else [least, most]

    def send(self, slots: NDArray[np.integer]) -> None:
        """Have these slots be launched from now on, in this order, after all that was launched before."""
        first, end = self._changed
        listed = slots.astype(np.int32)
        if len(listed):
            self._queue.post(self._list, listed)
            for kept, (x, y) in zip(self._bound, self._shapes[:, listed].max(axis=1).tolist(), strict=True):
                kept.shape = x, y
        if end > first:
            part = self._values[first:end].ravel().copy()
            self._queue.post(self._table, part, first * self._row_bytes)
        self._changed = [0, 0]

    def bound(self, launches: Sequence[Launch]) -> list[BoundLaunch]:
        """Return the shared launches that take the place of a molecule's own."""
        return [self._bound[self._numbers[id(launch)]] for launch in launches]

    def launch(self, launches: Sequence[BoundLaunch], count: int, first: int = 0) -> None:
        """Launch for so many structures of the list, from the place `first` on."""
        if count:
            self._queue.launch_bound(launches, count, first=first)


class Alone:
    """Launches of one structure alone, by the plain kernels: each array is a part of a store's buffer.

    It serves in place of Tables; the structure stays where it is.
    """

    def __init__(
        self, queue: Queue, stores: Sequence[Store], launches: Sequence[RecordedLaunch], begins: Begins
    ) -> None:  # fmt: skip
        """begins : as in Tables.put, of one structure"""
        from ...opencl.binding import BoundLaunch

        self._queue = queue
        self._parts: dict[int, Argument] = {}  # by piece
        self._bound: list[BoundLaunch] = []
        self._numbers = {id(launch): k for k, launch in enumerate(launches)}
        for launch in launches:
            for piece in launch.pieces:
                if id(piece) not in self._parts:
                    first = int(np.ravel(begins[piece.region])[0]) + piece.first
                    self._parts[id(piece)] = queue.part(stores[piece.store].buffer, first, piece.size)
            args = tuple(self._parts.get(id(arg), arg) for arg in launch.args)
            self._bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, args))

    def send(self, slots: NDArray[np.integer]) -> None:
        """Do nothing: there is but one structure."""

    def put(self, slots: NDArray[np.intp], rows: Sequence[ArgumentRow], begins: Begins) -> None:
        """Do nothing: the structure is where it was."""

    def bound(self, launches: Sequence[Launch]) -> list[BoundLaunch]:
        """Return the launches of the structure that take the place of the recorded ones."""
        return [self._bound[self._numbers[id(launch)]] for launch in launches]

    def launch(self, launches: Sequence[BoundLaunch], count: int, first: int = 0) -> None:
        """Launch for the structure, if it is to be."""
        if count:
            self._queue.launch_bound(launches, count, first=first)
