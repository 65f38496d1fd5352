"""Structures that live on a device, a row each: what lies where, and what is launched for which rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...atoms import Floats
from ...common.errors import DeviceMemoryError, InputError
from ...opencl.interface import N_TERMS, ROW, ROW_BLOCK
from ..result import PASS_TERMS
from .store import WORD, Copies, Store
from .system import Alone, System, Tables

if TYPE_CHECKING:
    from ...opencl.binding import BoundLaunch
    from ...opencl.kernel import Arguments
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue

Rows = NDArray[np.int64]
MOST_ROWS = 65_535  # of a launch, which CUDA's devices take in the second and third dimension
ITEMS = 64  # of a group that adds up a row on a GPU


@dataclass(eq=False)
class Group:
    """Rows whose molecules share launches.

    launches : of an evaluation; at_radii : of one at the radii of the one before, none if radii are not held
    rows : their numbers; slots of the tables are places in them
    listed : the rows that are launched at the moment
    """

    tables: Tables | Alone
    launches: Sequence[BoundLaunch]
    at_radii: Sequence[BoundLaunch]
    rows: Rows
    listed: Rows


@dataclass(frozen=True)
class RowLaunches:
    """Launches one after another, each for `count` rows of the list from place `first` on."""

    launches: Sequence[BoundLaunch]
    count: int
    first: int


def joined(all_launches: Sequence[RowLaunches]) -> list[RowLaunches]:
    """Join successive launches of as many rows, which spares calls."""
    found: list[RowLaunches] = []
    for of in all_launches:
        if found and (found[-1].count, found[-1].first) == (of.count, of.first):
            found[-1] = RowLaunches([*found[-1].launches, *of.launches], of.count, of.first)
        else:
            found.append(of)
    return found


class ResidentRows:
    """Rows of an ensemble in one large buffer: positions, results, and all that lies between.

    systems : of each row; None where a molecule cannot be computed, whose row is empty
    fine : the type of energies, float64 where the device has it
    distinct : the molecules, each once; numbers : of each row's among them
    store : what they have and share; own : first byte of each row there
    """

    def __init__(self, queue: Queue, systems: Sequence[System | None]) -> None:
        """Raises DeviceMemoryError if the device has no room for all."""
        self.queue, self.systems = queue, systems
        there = [k for k, system in enumerate(systems) if system is not None]
        self.there = np.array(there, np.int64)
        numbers = {system: number for number, system in enumerate(dict.fromkeys(systems))}
        self.distinct = list(numbers)
        self.numbers = np.array([numbers[system] for system in systems], np.int64)
        self.n_atoms = np.array([0 if system is None else len(system.energy.atoms) for system in systems], np.int64)
        self.first_atoms = np.cumsum([0, *self.n_atoms])
        encodings = {system.passes.encoding.dtype for system in systems if system is not None}
        if len(encodings) > 1:
            raise InputError(
                "on a device without float64 molecules wider than 1,000 A cannot share an ensemble with others; "
                "make an ensemble of them alone"
            )
        self.coordinate = next(iter(encodings), np.dtype(np.float64))
        self.fine = queue.dtype if self.coordinate.kind == "i" else np.dtype(np.float64)
        self._lay_out()
        self.groups = list(self._groups())
        self.rows_on_device, self.steps_on_device, self._further = self._describe()
        self._listed = queue.empty(max(1, len(systems)), np.int32)
        self._list: Rows = np.zeros(0, np.int64)
        self._copies = Copies(queue)
        self.energies_on_device = queue.zeros(len(systems), self.fine)
        self.numbers_on_device = queue.zeros(len(systems), np.int32)

    def _lay_out(self) -> None:
        """Place what molecules share, then the rows in their order."""
        systems = dict.fromkeys(system for system in self.systems if system is not None)
        for system in systems:
            _ = system.launches  # which bring the last of the arrays
        distinct = [system.recorder for system in systems]
        own = [self.system(k).recorder.own.size for k in self.there.tolist()]
        size, device = max(sum(recorder.shared.size for recorder in distinct) + sum(own), ROW_BLOCK), self.queue.device
        if size > device.largest_buffer:
            raise DeviceMemoryError(
                f"{len(self.systems):,} rows take {size / 2**30:.1f} GiB; {device} has buffers of "
                f"{device.largest_buffer / 2**30:.1f} GiB at most; take fewer rows"
            )
        queue, self.store = self.queue, Store(self.queue, size)
        queue.clear(self.store.buffer)
        self.own = np.zeros(len(self.systems), np.uint64)
        for recorder in distinct:
            self.store.share(recorder)
        for k in self.there.tolist():
            recorder = self.system(k).recorder
            first = self.store.take(recorder)
            assert first is not None
            self.own[k] = first
            if len(recorder.own.image):
                queue.write(self.store.buffer, recorder.own.image, first)
        queue.finish()

    @property
    def bytes_on_device(self) -> Buffer:
        """The buffer that has all rows."""
        return self.store.buffer

    def begins(self, rows: Rows) -> tuple[np.uint64, NDArray[np.uint64]]:
        """First bytes of what rows of one molecule share, and of each."""
        return np.uint64(self.store.shared[self.system(int(rows[0])).recorder]), self.own[rows]

    def _groups(self) -> Iterator[Group]:
        by_key: dict[Hashable, list[int]] = {}
        for k in self.there.tolist():
            by_key.setdefault(self.system(k).key, []).append(k)
        for numbers in by_key.values():
            first, rows = self.system(numbers[0]), np.array(numbers, np.int64)
            tables: Tables | Alone
            if first.recorder.is_shared:
                tables = Tables(self.queue, [self.store], first.launches, first.rows, len(rows))
                for system in dict.fromkeys(self.system(k) for k in numbers):
                    slots = np.flatnonzero([self.system(k) is system for k in numbers])
                    tables.put(slots, system.rows, self.begins(rows[slots]))
            else:
                tables = Alone(self.queue, [self.store], first.launches, self.begins(rows))
            launches, at_radii = tables.bound(first.passes.launches), tables.bound(first.at_radii)
            yield Group(tables, launches, at_radii, rows, np.zeros(0, np.int64))

    def _describe(self) -> tuple[Buffer, Buffer, Buffer]:
        """Make the table of rows as kernels of drivers see it, their steps, and where further energies are."""
        rows = np.zeros(max(1, len(self.systems)), ROW.dtype(self.queue.precision))
        steps, further = np.ones(len(rows)), np.zeros((len(rows), 2), np.int32)
        for k in self.there.tolist():
            system, passes = self.system(k), self.system(k).passes
            n, n_energies, own = len(passes.atoms), passes.n_energies, int(self.own[k])
            counted = sum(1 << bit for bit, name in enumerate(PASS_TERMS) if name in passes.contents.names)
            places = [(own + system.piece(name).first) // ROW_BLOCK for name in ("positions", "results")]
            rows[k] = n, self.first_atoms[k], *places, n_energies, counted
            steps[k] = passes.encoding.step
            first = N_TERMS * n_energies + n * (4 if passes.options.gradient else 1)
            further[k] = first, passes.n_results - first
        queue = self.queue
        return queue.upload(rows, rows.dtype), queue.upload(steps), queue.upload(further, np.int32)

    def system(self, k: int) -> System:
        """Return the molecule of a row that has one."""
        system = self.systems[k]
        assert system is not None
        return system

    def evaluate(self, rows: Rows, keep_radii: bool = False) -> None:
        """Start an evaluation of rows that have a molecule, and the sums of their energies.

        keep_radii : at the Born radii of the evaluation before, if radii are held
        """
        self.launch(rows, keep_radii)
        self.add_up(rows)
        self.queue.submit()

    def launch(self, rows: Rows, keep_radii: bool = False) -> None:
        """Start an evaluation of rows that have a molecule: their terms and gradients, no sums."""
        self.queue_up(self.launches_of(rows, keep_radii))

    def launches_of(self, rows: Rows, keep_radii: bool = False) -> list[RowLaunches]:
        """List rows in the tables, and give the launches of their evaluation, good until others are listed."""
        wanted, found = np.zeros(len(self.systems), bool), []
        wanted[rows] = True
        for group in self.groups:
            slots = np.flatnonzero(wanted[group.rows])
            if not np.array_equal(group.listed, slots):
                group.tables.send(slots)
                group.listed = slots
            launches = (keep_radii and group.at_radii) or group.launches
            found += [RowLaunches(launches, count, first) for first, count in self.parts(len(slots))]
        return found

    def queue_up(self, launches: Sequence[RowLaunches]) -> None:
        """Start launches."""
        for of in launches:
            self.queue.launch_bound(of.launches, of.count, first=of.first)

    @staticmethod
    def parts(n: int) -> Iterator[tuple[int, int]]:
        """First row and number of rows of each launch that n rows take."""
        return ((first, min(MOST_ROWS, n - first)) for first in range(0, n, MOST_ROWS))

    def add_up(self, rows: Rows) -> None:
        """Start the sums of energies."""
        self.list(rows)
        for first, count in self.parts(len(rows)):
            if first:
                kernel, items = self._adding.kernel, self._adding.group[0]
                self.queue.launch(kernel, (items, count), (items, 1), self._adding_arguments, offset=(0, first))
            else:
                self._adding.shape = self._adding.shape[0], count
                self.queue.launch_bound([self._adding], 1)

    @cached_property
    def _adding(self) -> BoundLaunch:
        """Launch that sums the energies of rows that are listed, a group each."""
        items = ITEMS if self.queue.device.kind == "GPU" else 1
        return self.queue.bind(
            "engine/energies.cl", "row_energies", (items, 1), (items, 1), self._adding_arguments, GROUP=items,
            **self.macros,
        )  # fmt: skip

    @property
    def _adding_arguments(self) -> Arguments:
        has_radii = any(self.system(k).passes.contents.has_gb for k in self.there.tolist())
        return dict(
            further=self._further, has_radii=has_radii, energies=self.energies_on_device,
            are_numbers=self.numbers_on_device, **self.arguments,
        )  # fmt: skip

    @property
    def macros(self) -> dict[str, int]:
        """Build definitions of kernels that see rows."""
        return {"FIXED_BITS": 8 * self.coordinate.itemsize if self.coordinate.kind == "i" else 0}

    @property
    def arguments(self) -> Arguments:
        """ENSEMBLE of cl/engine/rows.clh."""
        return dict(
            rows=self.rows_on_device, steps=self.steps_on_device, listed=self._listed, bytes=self.bytes_on_device
        )  # fmt: skip

    def list(self, rows: Rows) -> None:
        """Have kernels of drivers be launched for these rows."""
        if not np.array_equal(rows, self._list):
            self.queue.post(self._listed, rows.astype(np.int32))
            self._list = rows.copy()

    def forget_lists(self) -> None:
        """Have all lists of rows be rewritten, after an interrupt that may have come between two of their parts."""
        self._list = np.full(1, -1)
        for group in self.groups:
            group.listed = np.full(1, -1)

    def read(self, rows: Sequence[int] | Rows, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Read what rows of one molecule keep in a buffer of their passes, (n_rows, size), once all before is done."""
        return self._copies.gather(self.bytes_on_device, *self.places(rows, name), dtype)

    def read_part(self, rows: Sequence[int], name: str, first: int, count: int) -> Floats:
        """Read `count` reals from number `first` on of such a buffer, (n_rows, count), as float64."""
        places, _ = self.places(rows, name)
        each = self.queue.dtype.itemsize
        before = first * each % WORD // each  # pieces begin at whole words
        begin = places + np.uint64((first - before) * each)
        size, real = (count + before) * each, self.queue.dtype
        return self._copies.gather(self.bytes_on_device, begin, size, real, np.float64)[:, before:]

    def write(self, rows: Sequence[int], name: str, values: NDArray[Any]) -> None:
        """Write (n_rows, size) to a buffer of the passes of rows of one molecule, after all that was launched."""
        self._copies.scatter(self.bytes_on_device, [(self.places(rows, name)[0], values)])

    def pinned(self, shape: tuple[int, int], dtype: DTypeLike) -> AbstractContextManager[NDArray[Any]]:
        """Lend an array that is to be filled and then written."""
        return self._copies.pinned(shape, dtype)

    def places(self, rows: Sequence[int] | Rows, name: str) -> tuple[NDArray[np.uint64], int]:
        """Return the first bytes of a buffer of the passes of rows of one molecule, and the bytes of each."""
        piece = self.system(rows[0]).piece(name)
        return self.own[np.asarray(rows)] + np.uint64(piece.first), piece.size

    def copy(self, sources: Rows, targets: Rows) -> None:
        """Start the copy of all that rows have of their own to other rows of the same molecules."""
        sizes = np.array([self.system(k).own.size for k in sources.tolist()], np.int64)
        there = self.bytes_on_device
        self._copies.move(there, there, self.own[sources], self.own[targets], sizes)
        for buffer, values in ((self.energies_on_device, self.fine), (self.numbers_on_device, np.dtype(np.int32))):
            array = self.queue.download(buffer, len(self.systems), values)
            array[targets] = array[sources]
            self.queue.write(buffer, array)

    def energies(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Read the energies of all rows, kcal/mol, and whether the results of each are numbers."""
        n = len(self.systems)
        energies = self.queue.download(self.energies_on_device, n, self.fine).astype(np.float64)
        return energies, self.queue.download(self.numbers_on_device, n, np.int32) != 0
