"""Rows on a device: storage of their arrays, recorded molecules, and tables of kernel arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .plan import Energy, passes_of
from .scales import ScaledParameters

if TYPE_CHECKING:
    from ..opencl.binding import BoundLaunch, Launch
    from ..opencl.kernel import Argument
    from ..opencl.queue import Queue
    from ..opencl.recording import ArgumentRow, BufferPiece, RecordedLaunch, Recorder, Region

Gaps = list[tuple[int, int]]  # begin and end of the free regions of a buffer, in order


class Store:
    """Allocator of regions in one large buffer, for molecules and their rows.

    shared : offset of the region shared by the rows of a molecule, by recorder
    rewrites : number of calls of `rewrite`
    """

    def __init__(self, queue: Queue, size: int) -> None:
        self.buffer, self.size, self.shared = queue.empty(size, np.uint8), size, dict["Recorder", int]()
        self.rewrites = 0
        self._queue = queue
        self._gaps: Gaps = [(0, size)]
        self._users = Counter["Recorder"]()
        self._rows: dict[Recorder, list[int]] = {}

    def take(self, recorder: Recorder) -> int | None:
        """Allocate a region for a row, and one for its molecule if it has none; None if there is no space."""
        own = self._taken(recorder)
        if own is None and not any(self._users.values()):  # the free space is fragmented
            self._drop(self.shared)
            own = self._taken(recorder)
        if own is not None:
            self._users[recorder] += 1
            self._rows.setdefault(recorder, []).append(own)
        return own

    def give_back(self, recorder: Recorder, first: int) -> None:
        """Free the region of a row; the molecule's shared region is kept until space is needed."""
        give_gap_back(self._gaps, first, recorder.own.size)
        self._users[recorder] -= 1
        self._rows[recorder].remove(first)

    def rewrite(self, recorder: Recorder, is_shared: bool, first: int, data: NDArray[np.uint8]) -> None:
        """Write bytes to the shared region of a molecule, or to the regions of all its rows."""
        begins = [self.shared[recorder]] if is_shared and recorder in self.shared else []
        for begin in begins if is_shared else self._rows.get(recorder, ()):
            self._queue.write(self.buffer, data, begin + first)
        self.rewrites += 1

    def share(self, recorder: Recorder) -> bool:
        """Allocate the shared region of a molecule; return False if there is no space."""
        first = self._first(recorder.shared.size, recorder)
        if first is None:
            return False
        self.shared[recorder] = first
        recorder.homes.add(self)
        if len(recorder.shared.image):
            self._queue.write(self.buffer, recorder.shared.image, first)
        return True

    def _taken(self, recorder: Recorder) -> int | None:
        if recorder not in self.shared:
            # Drop unused molecules first: freed later, their regions would be gaps too small for the last row.
            self._drop([other for other in self.shared if not self._users[other]])
            if not self.share(recorder):
                return None
        return self._first(recorder.own.size, recorder)

    def _first(self, size: int, recorder: Recorder) -> int | None:
        """Allocate `size` bytes; if there is no space, drop the other molecules without rows."""
        first = take_gap(self._gaps, size) if size else 0
        if first is None:
            self._drop([other for other in self.shared if other is not recorder and not self._users[other]])
            first = take_gap(self._gaps, size)
        return first

    def _drop(self, recorders: Iterable[Recorder]) -> None:
        for recorder in list(recorders):
            first = self.shared.pop(recorder)
            if recorder.shared.size:
                give_gap_back(self._gaps, first, recorder.shared.size)


def take_gap(gaps: Gaps, size: int) -> int | None:
    """Allocate bytes in the first gap that is large enough. Returns their offset, or None if there is no such gap."""
    for k, (begin, end) in enumerate(gaps):
        if end - begin >= size:
            gaps[k : k + 1] = [(begin + size, end)] if end - begin > size else []
            return begin
    return None


def give_gap_back(gaps: Gaps, first: int, size: int) -> None:
    """Free allocated bytes and merge them with adjacent gaps."""
    joined: Gaps = []
    for begin, end in sorted([*gaps, (first, first + size)]):
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    gaps[:] = joined


Begins = Sequence["np.uint64 | NDArray[np.uint64]"]


class Recorded:
    """Recorded launches of a molecule and its arrays by name, from which argument tables are made.

    recorder : records the launches
    """

    recorder: Recorder

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        """All launches without repetition, in the same order for molecules with the same key."""
        raise NotImplementedError

    @cached_property
    def pieces(self) -> Mapping[str, BufferPiece]:
        """Pieces of a row's region, by array name."""
        raise NotImplementedError

    @cached_property
    def rows(self) -> list[ArgumentRow]:
        """Arguments of all launches."""
        launches = self.launches
        _ = self.recorder.shared, self.recorder.own  # lays out the arrays
        return [launch.row(self.recorder.slot) for launch in launches]

    @cached_property
    def key(self) -> Hashable:
        """Key that is equal for molecules that can share all launches."""
        return tuple(launch.key for launch in self.launches) if self.recorder.is_shared else id(self)


class System(Recorded):
    """A molecule whose rows can share launches with rows of other molecules.

    energy : its plan; passes : the recorded launches of an evaluation
    """

    def __init__(self, energy: Energy, *, is_alone: bool = False, is_scaled: bool = False) -> None:
        """is_alone : whether the molecule has one row and is the only one; is_scaled : whether rows scale parameters

        Raises InputError if parameters cannot be scaled.
        """
        from ..opencl.recording import Recorder

        self.recorder = Recorder(energy.device, energy.precision, is_shared=not is_alone)
        self.recorder.owns_parameters = is_scaled
        self.energy, self.passes = energy, passes_of(energy, self.recorder, 1)
        self.scaled = ScaledParameters(self.passes, self.recorder) if is_scaled else None

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        found, options = [*self.passes.launches], self.passes.options
        if options.gradient and not options.chain:  # for evaluations at fixed radii
            apart = self.passes.apart_at_radii
            found += [*apart[0], *apart[1]]
        return self.recorder.recorded(found)

    @cached_property
    def pieces(self) -> Mapping[str, BufferPiece]:
        return self.recorder.named(self.passes.buffers)

    @cached_property
    def at_radii(self) -> list[Launch]:
        """Launches of an evaluation at the previous Born radii; empty unless gradients are at fixed radii."""
        holds = self.energy.holds_radii and self.passes.contents.has_gb
        return self.passes.apart_at_radii[1] if holds else []

    @property
    def shared(self) -> Region:
        _ = self.launches
        return self.recorder.shared

    @property
    def own(self) -> Region:
        _ = self.launches
        return self.recorder.own

    @cached_property
    def origin(self) -> Floats:
        """Origin of positions on the device, (3,) A."""
        nowhere = np.zeros((1, 3 * len(self.energy.atoms)), self.passes.encoding.dtype)
        origin: Floats = self.passes.decode(nowhere)[0, 0]
        return origin


class Tables:
    """Launches for rows of molecules with the same key, each with a table of arguments.

    Each row has a slot in the tables. A list of slots says which rows are launched, and in which order. A single row
    of a single molecule has no tables: it uses the plain kernels, with parts of a store's buffer as arrays.
    """

    def __init__(
        self, queue: Queue, stores: Sequence[Store], recorded: Recorded, capacity: int, begins: Begins
    ) -> None:  # fmt: skip
        """recorded : launches of any molecule with the key; stores : of its arrays; capacity : number of slots

        begins : as in `put`, for the first row
        """
        self._queue, self._is_shared = queue, recorded.recorder.is_shared
        launches = recorded.launches
        self._numbers = {id(launch): k for k, launch in enumerate(launches)}
        if self._is_shared:
            self._bound = self._to_tables(stores, launches, recorded.rows, capacity)
        else:
            self._bound = self._to_parts(stores, launches, begins)

    def _to_tables(
        self, stores: Sequence[Store], launches: Sequence[RecordedLaunch], rows: Sequence[ArgumentRow], capacity: int
    ) -> list[BoundLaunch]:
        """Bind launches to tables that `put` fills."""
        from ..opencl.binding import BoundLaunch

        queue = self._queue
        self._firsts = np.cumsum([0, *(len(row.values) for row in rows)])
        self._row_bytes = int(self._firsts[-1])
        self._values = np.zeros((capacity, self._row_bytes), np.uint8)
        self._shapes = np.zeros((len(rows), capacity, 2), np.int64)
        self._table = queue.empty(self._values.size, np.uint8)
        self._list = queue.empty(capacity, np.int32)
        self._changed = [0, 0]  # range of slots that changed since the last `send`
        bound: list[BoundLaunch] = []
        for k, launch in enumerate(launches):
            first = np.int32(self._firsts[k])
            args: list[Argument] = [self._table, np.int32(self._row_bytes), first, self._list]
            args += [stores[arg.store].buffer for arg in launch.pieces]
            bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, tuple(args)))
        return bound

    def _to_parts(
        self, stores: Sequence[Store], launches: Sequence[RecordedLaunch], begins: Begins
    ) -> list[BoundLaunch]:
        """Bind launches to the arrays of the only row."""
        from ..opencl.binding import BoundLaunch

        queue, bound = self._queue, list[BoundLaunch]()
        parts: dict[int, Argument] = {}  # by piece
        for launch in launches:
            for piece in launch.pieces:
                if id(piece) not in parts:
                    first = int(np.ravel(begins[piece.region])[0]) + piece.first
                    parts[id(piece)] = queue.part(stores[piece.store].buffer, first, piece.size)
            args = tuple(parts.get(id(arg), arg) for arg in launch.args)
            bound.append(BoundLaunch(queue.device, launch.kernel, launch.shape, launch.group, args))
        return bound

    def put(self, slots: NDArray[np.intp], rows: Sequence[ArgumentRow], begins: Begins) -> None:
        """Assign slots to rows of one molecule.

        begins : offsets of the regions in the stores, one or one per slot, in the order of `BufferPiece.region`
        """
        if not self._is_shared:
            return
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
        """Set the slots to launch from now on, in this order. Earlier launches are not affected."""
        if not self._is_shared:
            return
        first, end = self._changed
        listed = slots.astype(np.int32)
        if len(listed):
            self._queue.enqueue_write(self._list, listed)
            for kept, (x, y) in zip(self._bound, self._shapes[:, listed].max(axis=1).tolist(), strict=True):
                kept.shape = x, y
        if end > first:
            part = self._values[first:end].ravel().copy()
            self._queue.enqueue_write(self._table, part, first * self._row_bytes)
        self._changed = [0, 0]

    def bound(self, launches: Sequence[Launch]) -> list[BoundLaunch]:
        """Return the shared launches that correspond to launches of a molecule."""
        return [self._bound[self._numbers[id(launch)]] for launch in launches]

    def launch(self, launches: Sequence[BoundLaunch], count: int, first: int = 0) -> None:
        """Launch for `count` rows of the list, starting at index `first`."""
        if count:
            self._queue.launch_bound(launches, count, first=first)
